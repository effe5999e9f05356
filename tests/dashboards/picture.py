"""Draws deploy/dashboards/overview.svg from what Prometheus measured in a run: plain SVG."""

from xml.sax.saxutils import escape

WIDTH, HEIGHT, COLUMNS, GAP = 320, 170, 3, 12
COLORS = ["#4e79a7", "#e15759", "#59a14f", "#f28e2b", "#76b7b2", "#b07aa1", "#9c755f", "#edc948"]

PANELS = [
    ("Requests a second, by decision", 'sum by (effect) (rate(portcullis_requests_total[5s]))', "effect"),
    ("Refusals a second, by reason",
     'sum by (reason) (rate(portcullis_requests_total{effect="deny"}[5s]))', "reason"),
    ("Rules that cannot be decided, a second", 'portcullis:rule_unknowns:rate5m', "rule"),
    ("Deliveries a second", 'sum by (delivery) (portcullis:deliveries:rate5m)', "delivery"),
    ("Share that may have arrived", 'portcullis:maybe:ratio5m', "agent"),
    ("Our own time, p99 in seconds", 'portcullis:overhead:p99_5m{phase=~"total|record|authenticate"}', "phase"),
    ("Journal blocked", 'portcullis_journal_trouble', "instance"),
    ("Age of the last signed checkpoint, seconds", 'portcullis:checkpoint:age_seconds', "instance"),
    ("Age of issuers' keys, seconds", 'max by (issuer) (portcullis_issuer_keys_age_seconds)', "issuer"),
    ("Skills, a second, and what they are worth",
     'sum by (source, assurance) (rate(portcullis_skills_total[5s]))', "assurance"),
    ("Agents' logs and the journal",
     'portcullis_reconcile_records{kind=~"theirs_only|refused_but_executed"}', "kind"),
    ("Alerts firing", 'count by (severity) (ALERTS{alertstate="firing"})', "severity"),
]


def overview(prometheus, began):
    rows = -(-len(PANELS) // COLUMNS)
    width = COLUMNS * (WIDTH + GAP) + GAP
    height = rows * (HEIGHT + GAP) + GAP + 28
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
           f'font-family="sans-serif" font-size="10" role="img">',
           "<title>Portcullis: a run of tests/dashboards/run</title>",
           f'<rect width="{width}" height="{height}" fill="#f6f7f9"/>',
           f'<text x="{GAP}" y="22" font-size="14" fill="#222">Two gateways and everything that can go '
           "wrong: after 20 s an issuer, an agent, a disk and a policy fail, and somebody walks around"
           "</text>"]
    shown = {}
    for number, (title, query, label) in enumerate(PANELS):
        x = GAP + number % COLUMNS * (WIDTH + GAP)
        y = 28 + GAP + number // COLUMNS * (HEIGHT + GAP)
        series = prometheus.over(query, began)
        out += panel(x, y, title, series, label, began, shown)
    return "\n".join(out + ["</svg>", ""])


def name_of(labels, label, shown):
    """Ports differ from run to run; gateways are numbered."""
    name = labels.get(label, "")
    if label == "instance":
        name = shown.setdefault(name, f"gateway {len(shown) + 1}")
    return name


def panel(x, y, title, series, label, began, shown):
    left, top, inner_width, inner_height = x + 34, y + 24, WIDTH - 44, HEIGHT - 62
    lines = []
    for one in series:
        values = [(float(t) - began, float(v)) for t, v in one["values"] if v not in ("NaN", "+Inf")]
        if values:
            lines.append((name_of(one["metric"], label, shown), values))
    lines.sort(key=lambda line: line[0])
    until = max([t for _, values in lines for t, _ in values], default=1) or 1
    most = max([v for _, values in lines for _, v in values], default=1) or 1
    out = [f'<rect x="{x}" y="{y}" width="{WIDTH}" height="{HEIGHT}" rx="4" fill="#fff" stroke="#d5d9e0"/>',
           f'<text x="{x + 8}" y="{y + 15}" font-size="11" font-weight="bold" fill="#222">{escape(title)}</text>']
    for part in (0, 0.5, 1):
        at = top + inner_height * (1 - part)
        out.append(f'<path d="M{left} {at:.1f}h{inner_width}" stroke="#e8ebf0"/>')
        out.append(f'<text x="{left - 4}" y="{at + 3:.1f}" text-anchor="end" fill="#667">{short(most * part)}</text>')
    at, line = x + 8, 0
    for number, (name, values) in enumerate(lines[:8]):
        color = COLORS[number % len(COLORS)]
        points = " ".join(f"{left + t / until * inner_width:.1f},{top + inner_height * (1 - v / most):.1f}"
                          for t, v in values)
        out.append(f'<polyline points="{points}" fill="none" stroke="{color}" stroke-width="1.4"/>')
        width = 10 + 6.2 * len(name[:24])
        if at + width > x + WIDTH:
            at, line = x + 8, line + 11
        where = (at, y + HEIGHT - 24 + line)
        at += width + 10
        out.append(f'<rect x="{where[0]}" y="{where[1] - 7}" width="7" height="7" fill="{color}"/>')
        out.append(f'<text x="{where[0] + 10}" y="{where[1]}" fill="#334">{escape(name[:24])}</text>')
    return out


def short(value):
    return f"{value:.0f}" if value >= 10 else f"{value:.2g}"
