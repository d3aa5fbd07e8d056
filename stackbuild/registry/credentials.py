"""A registry's credentials from Docker's own configuration, and the tokens they buy.

Token flow: distribution's "Token Authentication Specification" and "OAuth2 token" documents.
"""

from __future__ import annotations

import base64
import re
from dataclasses import dataclass, field
from urllib.parse import urlsplit

import docker.auth
import docker.errors
import requests

from stackbuild.errors import NotJudgedError
from stackbuild.registry.reference import DEFAULT_REGISTRY, Endpoint, is_loopback

_CLIENT_ID = "stackbuild"
_TIMEOUT = 30


@dataclass(frozen=True)
class Challenge:
    """A WWW-Authenticate header: its scheme in lower case and its parameters."""

    scheme: str
    parameters: dict[str, str] = field(default_factory=dict)


def parse_challenge(header: str) -> Challenge:
    """Read a WWW-Authenticate header (RFC 9110, section 11.6.1), its first challenge."""
    scheme, _, rest = header.strip().partition(" ")
    pairs = re.findall(r'([A-Za-z_]+)=(?:"([^"]*)"|([^\s,]+))', rest)
    return Challenge(scheme.lower(), {name.lower(): quoted or bare for name, quoted, bare in pairs})


def authorization(
    session: requests.Session, endpoint: Endpoint, challenge: Challenge, docker_config: str | None
) -> str | None:
    """The Authorization header that answers a challenge; None when there is nothing to answer with.

    Args:
        session: What to ask the token server with.
        endpoint: The repository that was refused.
        challenge: How it was refused.
        docker_config: Docker's config.json; None for its usual place.

    Raises:
        NotJudgedError: ``registry-credentials`` when a credential helper fails, ``registry-denied`` when
            the token server refuses the credentials.
        requests.RequestException: The token server cannot be reached.
    """
    credentials = _credentials(endpoint, docker_config)
    if challenge.scheme == "basic":
        return _basic(credentials) if credentials else None
    if challenge.scheme != "bearer" or "realm" not in challenge.parameters:
        return None
    realm = challenge.parameters["realm"]
    if not _may_carry_credentials(realm):
        credentials = None
    scope = challenge.parameters.get("scope") or f"repository:{endpoint.name}:pull"
    query = {"scope": scope}
    if "service" in challenge.parameters:
        query["service"] = challenge.parameters["service"]
    if credentials and credentials.get("identitytoken"):
        form = {
            **query,
            "grant_type": "refresh_token",
            "refresh_token": credentials["identitytoken"],
            "client_id": _CLIENT_ID,
        }
        response = session.post(realm, data=form, timeout=_TIMEOUT)
    else:
        headers = {"Authorization": _basic(credentials)} if credentials else {}
        response = session.get(realm, params=query, headers=headers, timeout=_TIMEOUT)
    if response.status_code in (401, 403):
        raise NotJudgedError(
            f"the registry {endpoint.registry} does not accept the credentials for it"
            if credentials
            else f"the registry {endpoint.registry} gives nobody access without credentials",
            code="registry-denied",
            do=f"Run `docker login {_login_name(endpoint)}` again.",
        )
    response.raise_for_status()
    body = response.json()
    token = (body.get("token") or body.get("access_token")) if isinstance(body, dict) else None
    return f"Bearer {token}" if token else None


def _credentials(endpoint: Endpoint, docker_config: str | None) -> dict[str, str] | None:
    if not endpoint.may_carry_credentials:
        return None
    try:
        config = docker.auth.load_config(docker_config)
        registry = None if endpoint.host == DEFAULT_REGISTRY else endpoint.host
        found = config.resolve_authconfig(registry)
    except docker.errors.DockerException as error:
        raise NotJudgedError(
            f"Docker's credential helper for {endpoint.host} failed",
            code="registry-credentials",
            detail=str(error),
            do="Check 'credsStore' and 'credHelpers' in Docker's config.json.",
        ) from error
    if not found:
        return None
    return {
        "username": found.get("username") or found.get("Username") or "",
        "password": found.get("password") or found.get("Password") or "",
        "identitytoken": found.get("identitytoken") or found.get("IdentityToken") or "",
    }


def _basic(credentials: dict[str, str]) -> str:
    pair = f"{credentials['username']}:{credentials['password']}".encode()
    return f"Basic {base64.b64encode(pair).decode()}"


def _may_carry_credentials(url: str) -> bool:
    parts = urlsplit(url)
    return parts.scheme == "https" or is_loopback(parts.netloc)


def _login_name(endpoint: Endpoint) -> str:
    return "" if endpoint.host == DEFAULT_REGISTRY else endpoint.host
