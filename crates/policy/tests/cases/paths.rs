//! Cgroup paths.

use crate::common::{codes, in_cgroup, policy, report, rule_of, takes};
use twopool_diag::Code;

#[test]
fn g01_prefix_boundary_and_slash_normalisation() {
    for written in [
        "/system.slice/docker",
        "system.slice/docker",
        "system.slice/docker/",
    ] {
        let under = format!("cgroup = {{ under = \"{written}\" }}");
        assert!(takes(&under, &in_cgroup("/system.slice/docker")));
        assert!(takes(&under, &in_cgroup("/system.slice/docker/y")));
        for other in ["docker.service", "docker-3f9a.scope", "dockerx/y"] {
            assert!(
                !takes(&under, &in_cgroup(format!("/system.slice/{other}"))),
                "{written} {other}"
            );
        }
    }
    for written in ["/a/b", "a/b", "a/b/"] {
        let bare = format!("cgroup = \"{written}\"");
        assert!(
            takes(&bare, &in_cgroup("/a/b")) && !takes(&bare, &in_cgroup("/a/b/c")),
            "{written}"
        );
    }
    assert!(takes("cgroup = \"/\"", &in_cgroup("/")) && !takes("cgroup = \"/\"", &in_cgroup("/a")));
    assert!(takes("cgroup = { under = \"/\" }", &in_cgroup("/")));
    assert!(takes("cgroup = { under = \"/\" }", &in_cgroup("/a/b")));
}

#[test]
fn g02_systemd_escapes_are_plain_bytes() {
    let path =
        r"/user.slice/user-1000.slice/user@1000.service/app.slice/app-firefox\x2desr-07dd.scope";
    let thread = in_cgroup(path);
    let base = "/user.slice/user-1000.slice/user@1000.service/app.slice";
    assert!(takes(&format!("cgroup = {{ under = '{path}' }}"), &thread));
    assert!(takes(
        &format!(r"cgroup = '{base}/app-firefox\x2desr-*'"),
        &thread
    ));
    let basic = format!("[[rule]]\npool = \"critical\"\ncgroup = {{ under = \"{path}\" }}");
    let out = policy(&basic);
    assert_eq!(codes(&out), [Code::SuspiciousEscape]);
    assert_eq!(rule_of(&out, &thread), None);
    assert!(report(&out).contains("single quotes"), "{}", report(&out));
    assert!(!takes(
        &format!("cgroup = {{ under = \"{base}/app-firefox-esr-07dd.scope\" }}"),
        &thread
    ));
}

#[test]
fn g06_kubernetes_spellings_of_two_drivers() {
    let regex = "cgroup = { regex = '/kubepods.*burstable.*' }";
    for path in [
        "/kubepods/burstable/pod0a1b-2c/77",
        "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod0a1b_2c.slice/cri-containerd-77.scope",
    ] {
        assert!(takes(regex, &in_cgroup(path)), "{path}");
    }
    assert!(!takes(
        regex,
        &in_cgroup("/kubepods.slice/kubepods-pod0a1b_2c.slice/cri-containerd-77.scope")
    ));
    let glob = "cgroup = \"/kubepods{.slice/kubepods-burstable.slice,/burstable}/**\"";
    assert!(takes(glob, &in_cgroup("/kubepods/burstable/pod0a1b-2c/77")));
    assert!(takes(
        glob,
        &in_cgroup("/kubepods.slice/kubepods-burstable.slice/x.slice")
    ));
}
