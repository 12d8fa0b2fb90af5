"""Push messages: sealed as RFC 8291 says, and signed as RFC 8292 does."""

from __future__ import annotations

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec

from clew.errors import UsageError
from clew.features.dashboard import push_crypto as crypto
from clew.features.dashboard.push_subscriptions import check_endpoint

#: Appendix A of RFC 8291.
PLAIN = b"When I grow up, I want to be a watermelon"
BROWSER = (
    "BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcxaOzi6-AYWXvTBHm4bjyPjs7Vd8pZGH6SRpkNtoIAiw4",
    "BTBZMqHH6r4Tts7J_aSIgg",
)
SERVER_KEY = "yfWPiYE-n46HLnH0KqZOF1fJJU3MYrct3AELtAQ-oRw"
SALT = "DGv6ra1nlYgDCS1FRnbzlw"
SEALED = (
    "DGv6ra1nlYgDCS1FRnbzlwAAEABBBP4z9KsN6nGRTbVYI_c7VJSPQTBtkgcy27mlmlMoZIIgDll6e3vCYLocInmYWAmS"
    "6TlzAC8wEqKK6PBru3jl7A_yl95bQpu6cVPTpK4Mqgkf1CXztLVBSt2Ks3oZwbuwXPXLWyouBWLVWGNWQexSgSxsj_Qu"
    "lcy4a-fN"
)


def test_a_message_is_sealed_as_in_the_example_of_the_standard() -> None:
    key = crypto.load_private_key(SERVER_KEY)
    sealed = crypto.encrypt(PLAIN, *BROWSER, salt=crypto.decode(SALT), key=key)
    assert crypto.encode(sealed) == SEALED
    assert crypto.encrypt(PLAIN, *BROWSER) != crypto.encrypt(PLAIN, *BROWSER)


def test_a_push_service_is_told_who_sends_by_a_signature_that_others_verify() -> None:
    key = crypto.load_private_key(crypto.make_private_key())
    told = crypto.make_authorization(
        "https://push.example/send/1?x=2", key, contact="https://clew.example", now=1_000_000
    )
    token = told.removeprefix("vapid t=").partition(",")[0]
    point = crypto.decode(told.partition(" k=")[2])
    public = ec.EllipticCurvePublicKey.from_encoded_point(ec.SECP256R1(), point)
    checks = {"verify_exp": False}
    claims = jwt.decode(
        token,
        public,
        ["ES256"],
        audience="https://push.example",
        options=checks,  # pyright: ignore[reportArgumentType]
    )
    assert claims["sub"] == "https://clew.example"
    assert claims["exp"] - 1_000_000 <= 24 * 3600


@pytest.mark.parametrize(
    ("p256dh", "auth"), [(BROWSER[0][:-2], BROWSER[1]), (BROWSER[0], "short"), ("", ""), ("é", "é")]
)
def test_keys_that_nothing_can_be_sealed_with_are_refused(p256dh: str, auth: str) -> None:
    assert crypto.check_keys(*BROWSER)
    assert not crypto.check_keys(p256dh, auth)


@pytest.mark.parametrize(
    "endpoint",
    [
        "https://localhost/x",
        "http://fcm.googleapis.com/fcm/send/1",
        "https://fcm.googleapis.com.evil.example/1",
        "https://user@169.254.169.254/latest",
        "file:///etc/passwd",
        "",
    ],
)
def test_the_gateway_sends_to_push_services_only(endpoint: str) -> None:
    check_endpoint("https://fcm.googleapis.com/fcm/send/abc", ())
    check_endpoint("https://wns2-par02p.notify.windows.com/w/?token=1", ())
    check_endpoint("http://127.0.0.1:9/x", ("http://127.0.0.1:9",))
    with pytest.raises(UsageError, match="no push service"):
        check_endpoint(endpoint, ())
