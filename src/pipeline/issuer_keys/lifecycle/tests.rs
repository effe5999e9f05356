#![allow(clippy::unwrap_used)]
use super::*;
use proptest::prelude::*;

const RHYTHM: Rhythm = Rhythm {
    refresh: Duration::from_secs(300),
    may_wait: true,
    stale: Duration::from_secs(3600),
};
/// Random bits that change nothing: the middle of the range.
const EVEN: u32 = u32::MAX / 2;

fn s(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

/// With a set that was fetched at 0.
fn fetched() -> Lifecycle {
    let mut life = Lifecycle::new(RHYTHM, s(0));
    assert!(life.begin_due(s(0)));
    assert_eq!(life.succeeded(s(0), None, EVEN), s(3600));
    life
}

/// `due`, in whole seconds.
fn due(life: &Lifecycle) -> u64 {
    u64::try_from((life.due().as_millis() + 500) / 1000).unwrap()
}

#[test]
fn lc_6_refreshes_follow_the_configured_pause_and_max_age_within_its_range() {
    let pause = |refresh, may_wait, max_age: Option<u64>| {
        let rhythm = Rhythm {
            refresh: s(refresh),
            may_wait,
            ..RHYTHM
        };
        let mut life = Lifecycle::new(rhythm, s(0));
        life.begin(s(0));
        life.succeeded(s(0), max_age.map(s), EVEN);
        due(&life)
    };
    assert_eq!(pause(300, true, None), 300);
    assert_eq!(pause(300, true, Some(900)), 900);
    assert_eq!(pause(300, true, Some(1)), 60);
    assert_eq!(pause(300, true, Some(1_000_000)), 3600);
    // Whoever chose how soon a removed key is noticed is not overruled by the issuer.
    assert_eq!(pause(120, false, Some(900)), 120);
    assert_eq!(pause(120, false, Some(90)), 90);
}

#[test]
fn lc_6_every_pause_has_ten_percent_of_chance() {
    for (chance, seconds) in [(0, 270), (EVEN, 300), (u32::MAX, 330)] {
        let mut life = Lifecycle::new(RHYTHM, s(0));
        life.begin(s(0));
        life.succeeded(s(0), None, chance);
        assert_eq!(due(&life), seconds);
        assert!(!life.begin_due(s(seconds) - s(1)));
        assert!(life.begin_due(s(seconds) + s(1)));
    }
}

#[test]
fn lc_7_one_fetch_runs_at_a_time() {
    let mut life = Lifecycle::new(RHYTHM, s(0));
    assert!(life.begin_due(s(0)));
    assert!(!life.begin_due(s(0)) && !life.begin(s(500)));
    let mut budget = Budget::default();
    assert_eq!(life.unknown("new", s(500), &mut budget), Unknown::Wait);
    life.failed(s(500), EVEN);
    assert!(life.begin(s(500)));
}

#[test]
fn lc_8_an_unknown_kid_causes_one_fetch_in_thirty_seconds_whatever_came_of_it() {
    let mut budget = Budget::default();
    let mut life = fetched();
    assert_eq!(life.unknown("a", s(29), &mut budget), Unknown::TooSoon);
    assert_eq!(life.unknown("a", s(30), &mut budget), Unknown::Fetch);
    life.failed(s(31), EVEN);
    assert_eq!(life.unknown("b", s(59), &mut budget), Unknown::TooSoon);
    assert_eq!(life.unknown("b", s(60), &mut budget), Unknown::Fetch);
    // Nor does an empty set, or none at all, shorten it.
    let mut never = Lifecycle::new(RHYTHM, s(0));
    never.begin(s(0));
    never.failed(s(0), EVEN);
    assert_eq!(never.unknown("a", s(29), &mut budget), Unknown::TooSoon);
}

#[test]
fn lc_8_a_kid_that_a_fetch_did_not_bring_is_remembered_for_thirty_seconds() {
    let mut budget = Budget::default();
    let mut life = fetched();
    assert_eq!(life.unknown("a", s(100), &mut budget), Unknown::Fetch);
    life.succeeded(s(101), None, EVEN);
    life.missed("a");
    // A refresh that runs may help others, and not this one.
    assert!(life.begin(s(110)));
    assert_eq!(life.unknown("a", s(129), &mut budget), Unknown::Remembered);
    assert_eq!(life.unknown("b", s(129), &mut budget), Unknown::Wait);
    // Asking did not prolong it.
    assert_eq!(life.unknown("a", s(130), &mut budget), Unknown::Wait);
}

#[test]
fn lc_8_what_is_remembered_is_bounded_and_the_newest_stays() {
    let mut life = fetched();
    for number in 0..5000 {
        life.missed(&number.to_string());
    }
    assert_eq!(life.missing.order.len(), REMEMBERED);
    assert_eq!(life.missing.until.len(), REMEMBERED);
    assert!(life.missing.knows("4999", s(1)) && !life.missing.knows("0", s(1)));
}

#[test]
fn lc_8_all_issuers_share_a_budget_which_refreshes_do_not_use() {
    let mut budget = Budget::default();
    let mut lives: Vec<Lifecycle> = (0..12).map(|_| fetched()).collect();
    let asked: Vec<Unknown> = lives
        .iter_mut()
        .map(|life| life.unknown("x", s(100), &mut budget))
        .collect();
    assert_eq!(
        asked.iter().filter(|u| **u == Unknown::Fetch).count(),
        BUDGET
    );
    assert_eq!(&asked[BUDGET..], [Unknown::Spent; 2]);
    // The refresh that is due comes all the same.
    assert!(lives[11].begin_due(s(400)));
    assert_eq!(lives[10].unknown("x", s(159), &mut budget), Unknown::Spent);
    assert_eq!(lives[10].unknown("x", s(160), &mut budget), Unknown::Fetch);
}

#[test]
fn lc_10_failures_are_retried_ever_more_slowly_and_change_nothing_about_the_set() {
    let mut life = fetched();
    let mut now = 300;
    let mut pauses = Vec::new();
    for _ in 0..9 {
        assert!(life.begin_due(s(now + 1)));
        life.failed(s(now + 1), EVEN);
        let next = due(&life);
        pauses.push(next - now - 1);
        now = next;
    }
    assert_eq!(pauses, [1, 2, 4, 8, 16, 32, 60, 60, 60]);
    assert_eq!(life.success(), Some(s(0)));
    assert!(life.begin(s(now)));
    life.succeeded(s(now), None, EVEN);
    assert!(life.begin(s(now)));
    life.failed(s(now), EVEN);
    assert_eq!(due(&life) - now, 1, "a success begins it anew");
}

#[test]
fn lc_10_a_sets_age_counts_from_when_it_was_asked_for() {
    let mut life = Lifecycle::new(RHYTHM, s(0));
    life.begin(s(100));
    assert_eq!(life.succeeded(s(104), None, EVEN), s(3700));
    assert_eq!(life.success(), Some(s(100)));
}

/// What can happen to one of a few issuers.
#[derive(Debug, Clone)]
enum Happening {
    Passes(u64),
    Tick(usize),
    Unknown(usize, u8),
    Good(usize, Option<u64>, u32),
    Bad(usize, u32),
}

fn happening() -> impl Strategy<Value = Happening> {
    let issuer = || 0..3usize;
    prop_oneof![
        3 => (1..40u64).prop_map(Happening::Passes),
        1 => (40..4000u64).prop_map(Happening::Passes),
        3 => issuer().prop_map(Happening::Tick),
        6 => (issuer(), any::<u8>()).prop_map(|(i, kid)| Happening::Unknown(i, kid)),
        3 => (issuer(), proptest::option::of(0..10_000u64), any::<u32>())
            .prop_map(|(i, age, chance)| Happening::Good(i, age, chance)),
        3 => (issuer(), any::<u32>()).prop_map(|(i, chance)| Happening::Bad(i, chance)),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    /// Never more fetches than the budget, never two at once, no set older than the bound, and a
    /// refresh is never further away than its pause.
    #[test]
    fn whatever_happens_the_bounds_hold(happenings in proptest::collection::vec(happening(), 1..300)) {
        let mut now = s(0);
        let mut budget = Budget::default();
        let mut lives: Vec<Lifecycle> = (0..3).map(|_| Lifecycle::new(RHYTHM, now)).collect();
        let mut running = [false; 3];
        let mut attempts: Vec<Vec<Duration>> = vec![Vec::new(); 3];
        let mut caused: Vec<Duration> = Vec::new();
        let mut asked = [s(0); 3];
        for happening in happenings {
            match happening {
                Happening::Passes(seconds) => now += s(seconds),
                Happening::Tick(i) => {
                    let due = lives[i].due();
                    if lives[i].begin_due(now) {
                        prop_assert!(!running[i] && now >= due);
                        running[i] = true;
                        asked[i] = now;
                        attempts[i].push(now);
                    } else {
                        prop_assert!(running[i] || now < due, "a refresh was starved");
                    }
                }
                Happening::Unknown(i, kid) => {
                    let last = attempts[i].last().copied();
                    if lives[i].unknown(&kid.to_string(), now, &mut budget) == Unknown::Fetch {
                        prop_assert!(!running[i]);
                        prop_assert!(last.is_none_or(|last| now - last >= COOLDOWN));
                        let lately = caused.iter().filter(|at| now - **at < BUDGET_WINDOW).count();
                        prop_assert!(lately < BUDGET);
                        running[i] = true;
                        asked[i] = now;
                        attempts[i].push(now);
                        caused.push(now);
                    }
                }
                Happening::Good(i, max_age, chance) if running[i] => {
                    let until = lives[i].succeeded(now, max_age.map(s), chance);
                    running[i] = false;
                    prop_assert_eq!(until, asked[i] + RHYTHM.stale);
                    prop_assert!(lives[i].due() >= now + s(54));
                    prop_assert!(lives[i].due() <= now + s(3960));
                }
                Happening::Bad(i, chance) if running[i] => {
                    let held = lives[i].success();
                    lives[i].failed(now, chance);
                    running[i] = false;
                    prop_assert_eq!(lives[i].success(), held);
                    prop_assert!(lives[i].due() <= now + s(66));
                }
                Happening::Good(..) | Happening::Bad(..) => {}
            }
            for i in 0..3 {
                prop_assert_eq!(lives[i].is_running(), running[i]);
            }
        }
    }
}
