//! The listener of operators, asked by pages in a browser.

use crate::calls::Stand;
use crate::support::client::get;

/// On loopback, a page reaches the listener by a name that is made to resolve there.
#[tokio::test]
async fn a_page_of_somebody_elses_learns_nothing() {
    let stand = Stand::new().await;
    let admin = stand.gateway.admin;
    for path in ["/metrics", "/readyz", "/livez", "/nowhere"] {
        for fields in [
            &[("Host", "evil.example.com")][..],
            &[("Host", "127.0.0.1.evil.example.com")],
            &[
                ("Host", "localhost"),
                ("Origin", "https://evil.example.com"),
            ],
            &[("Host", "localhost"), ("Origin", "null")],
        ] {
            let answer = get(admin, path, fields).await.unwrap();
            assert_eq!(answer.status, 421, "{path} {fields:?}");
            assert!(!answer.text().contains("portcullis_"), "{path} {fields:?}");
        }
    }
    for host in ["localhost:9901", "127.0.0.1", "[::1]:9901"] {
        let answer = get(admin, "/metrics", &[("Host", host)]).await.unwrap();
        assert_eq!(answer.status, 200, "{host}");
    }
}
