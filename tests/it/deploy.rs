//! What `deploy/` ships is well formed and closes the way that it says it closes.

use portcullis::source::{Document, Kind, Node};
use std::fs;
use std::path::Path;

fn read(name: &str) -> Document {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("deploy")
        .join(name);
    let text = fs::read_to_string(path).unwrap();
    let document = Document::parse(name, &text).unwrap_or_else(|problems| panic!("{problems}"));
    assert_eq!(document.problems.to_string(), "", "{name}");
    document
}

fn at<'n>(node: &'n Node, path: &str) -> &'n Node {
    path.split('.').fold(node, |node, name| {
        node.get(name)
            .unwrap_or_else(|| panic!("no `{name}` of `{path}`"))
    })
}

fn items(node: &Node) -> &[Node] {
    match &node.kind {
        Kind::Seq(items) => items,
        other => panic!("no list: {other:?}"),
    }
}

fn texts(node: &Node) -> Vec<&str> {
    items(node).iter().map(|item| &*item.written).collect()
}

#[test]
fn the_kubernetes_policy_admits_the_gateway_alone() {
    let policy = read("network/kubernetes.yaml").root;
    assert_eq!(&*at(&policy, "kind").written, "NetworkPolicy");
    assert_eq!(texts(at(&policy, "spec.policyTypes")), ["Ingress"]);
    let [rule] = items(at(&policy, "spec.ingress")) else {
        panic!("more than one way in");
    };
    let [from] = items(at(rule, "from")) else {
        panic!("more than one source");
    };
    // In one element they are ANDed.
    assert!(from.get("namespaceSelector").is_some() && from.get("podSelector").is_some());
    assert_eq!(items(at(rule, "ports")).len(), 1);
}

#[test]
fn the_compose_file_keeps_the_agent_inside() {
    let file = read("network/compose.yaml").root;
    assert!(at(&file, "services.agent").get("ports").is_none());
    assert_eq!(texts(at(&file, "services.agent.networks")), ["agents"]);
    assert_eq!(&*at(&file, "networks.agents.internal").written, "true");
    let gateway = texts(at(&file, "services.portcullis.networks"));
    assert_eq!(gateway, ["outside", "agents"]);
    assert_eq!(texts(at(&file, "services.stranger.networks")), ["outside"]);
}
