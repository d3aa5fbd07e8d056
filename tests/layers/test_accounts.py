from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stackbuild.errors import BuildError
from stackbuild.layers.accounts import Accounts, owner_ids, users, with_user
from stackbuild.spec.model import UserSpec

PASSWD = "root:x:0:0:root:/root:/bin/bash\nubuntu:x:1000:1000:Ubuntu:/home/ubuntu:/bin/bash\n"
GROUP = "root:x:0:\nusers:x:100:\nubuntu:x:1000:\n"
BASE = Accounts(PASSWD, GROUP, "root:*:19000:0:99999:7:::\n", "root:*::\n")


def test_a_new_user_is_added_to_every_file_the_base_has() -> None:
    after, user = with_user(BASE, UserSpec(name="app", uid=1001))
    assert (user.uid, user.gid, user.home) == (1001, 1001, "/home/app")
    assert after.passwd == PASSWD + "app:x:1001:1001::/home/app:/bin/sh\n"
    assert after.group == GROUP + "app:x:1001:\n"
    assert after.shadow == "root:*:19000:0:99999:7:::\napp:!:19675:0:99999:7:::\n"
    assert after.gshadow == "root:*::\napp:!::\n"


def test_shadow_files_are_not_made_where_the_base_has_none() -> None:
    after, _ = with_user(Accounts(PASSWD, GROUP), UserSpec(name="app", uid=1001))
    assert after.shadow is None
    assert after.gshadow is None


def test_the_same_name_and_uid_are_reused() -> None:
    after, user = with_user(BASE, UserSpec(name="ubuntu", uid=1000))
    assert after == BASE
    assert user.home == "/home/ubuntu"


def test_a_reused_user_gets_the_home_the_spec_asks_for() -> None:
    after, user = with_user(BASE, UserSpec(name="ubuntu", uid=1000, home="/srv"))
    assert user.home == "/srv"
    assert after.passwd.endswith("ubuntu:x:1000:1000:Ubuntu:/srv:/bin/bash\n")


@pytest.mark.parametrize(
    ("user", "code", "words"),
    [
        (UserSpec(name="app", uid=1000), "uid-taken", "uid 1000 is taken by ubuntu"),
        (UserSpec(name="ubuntu", uid=1001), "uid-taken", "a user named ubuntu, with uid 1000"),
        (UserSpec(name="ubuntu", uid=1000, gid=5), "gid-taken", "ubuntu with gid 1000, not 5"),
        (UserSpec(name="app", uid=100), "gid-taken", "gid 100 is taken by the group users"),
        (UserSpec(name="users", uid=2000), "gid-taken", "a group named users, with gid 100"),
    ],
)
def test_a_taken_uid_gid_or_name_says_who_has_it(user: UserSpec, code: str, words: str) -> None:
    with pytest.raises(BuildError, match=words) as caught:
        with_user(BASE, user)
    assert caught.value.code == code
    assert caught.value.do


def test_a_group_chosen_by_its_number_is_used() -> None:
    after, user = with_user(BASE, UserSpec(name="app", uid=1001, gid=100))
    assert user.gid == 100
    assert after.group == GROUP


def test_malformed_lines_are_kept() -> None:
    odd = "root:x:0:0:root:/root:/bin/sh\n\nbroken line\n+::::::\nx:y:z:0:::\nlast:x:7:7::/:/bin/sh"
    after, _ = with_user(Accounts(odd, ""), UserSpec(name="app", uid=1001))
    assert after.passwd == odd + "\napp:x:1001:1001::/home/app:/bin/sh\n"
    assert after.group == "app:x:1001:\n"


@given(st.text(max_size=200), st.text(max_size=100))
def test_any_text_is_only_added_to(passwd: str, group: str) -> None:
    after, _ = with_user(Accounts(passwd, group), UserSpec(name="app", uid=1001))
    assert after.passwd.startswith(passwd)
    assert after.group.startswith(group)
    assert any(user.name == "app" and user.uid == 1001 for user in users(after.passwd))


@pytest.mark.parametrize(
    ("owner", "ids"),
    [
        (None, (0, 0)),
        ("ubuntu", (1000, 1000)),
        ("ubuntu:users", (1000, 100)),
        ("1000", (1000, 1000)),
        ("1234", (1234, 1234)),
        ("1234:5", (1234, 5)),
        ("0:users", (0, 100)),
    ],
)
def test_owners_are_looked_up_in_the_images_own_files(owner: str | None, ids: tuple[int, int]) -> None:
    assert owner_ids(owner, PASSWD, GROUP) == ids


@pytest.mark.parametrize("owner", ["nobody", "ubuntu:wheel", ""])
def test_an_unknown_owner_is_named(owner: str) -> None:
    with pytest.raises(BuildError) as caught:
        owner_ids(owner, PASSWD, GROUP)
    assert caught.value.code == "owner-unknown"
    assert "ubuntu" in caught.value.detail or "users" in caught.value.detail
