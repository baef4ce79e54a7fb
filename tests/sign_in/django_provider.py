"""Django with its OAuth Toolkit as an OpenID provider with one client, which any user can use.

Arguments: the client's id, its secret and its redirect URI. It prints its issuer when it listens. It runs in the
virtual environment of scripts/setup-frameworks.sh, without funcmcp.
"""

from __future__ import annotations

import sys
from typing import Any
from wsgiref.simple_server import WSGIRequestHandler, make_server

import django
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from django.conf import settings
from django.core.management import call_command
from django.core.wsgi import get_wsgi_application
from django.urls import include, path

FORM = (
    '<form method="post" action="">{% csrf_token %}<input name="username"><input type="password" name="password">'
    '<input type="hidden" name="next" value="{{ next }}"><button>Sign in</button></form>'
)


def configure() -> None:
    pem = rsa.generate_private_key(65537, 2048).private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    settings.configure(
        SECRET_KEY="a key of the tests",
        ALLOWED_HOSTS=["127.0.0.1"],
        ROOT_URLCONF=__name__,
        DATABASES={"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": ":memory:"}},
        INSTALLED_APPS=[
            "django.contrib.auth",
            "django.contrib.contenttypes",
            "django.contrib.sessions",
            "oauth2_provider",
        ],
        MIGRATION_MODULES=dict.fromkeys(["auth", "contenttypes", "sessions", "oauth2_provider"]),  # tables at once
        MIDDLEWARE=[
            "django.contrib.sessions.middleware.SessionMiddleware",
            "django.middleware.csrf.CsrfViewMiddleware",
            "django.contrib.auth.middleware.AuthenticationMiddleware",
        ],
        TEMPLATES=[
            {
                "BACKEND": "django.template.backends.django.DjangoTemplates",
                "OPTIONS": {
                    "context_processors": ["django.template.context_processors.request"],
                    "loaders": [("django.template.loaders.locmem.Loader", {"registration/login.html": FORM})],
                },
            }
        ],
        LOGIN_URL="/login/",
        AUTHENTICATION_BACKENDS=[f"{__name__}.AnyUser"],
        PASSWORD_HASHERS=["django.contrib.auth.hashers.MD5PasswordHasher"],
        OAUTH2_PROVIDER={
            "OIDC_ENABLED": True,
            "OIDC_RSA_PRIVATE_KEY": pem.decode(),
            "SCOPES": {"openid": "who you are", "profile": "your name", "email": "your address"},
            "OAUTH2_VALIDATOR_CLASS": f"{__name__}.new_validator",
        },
        DEFAULT_AUTO_FIELD="django.db.models.BigAutoField",
    )


class AnyUser:
    """Signs a user in whose password is the name."""

    def authenticate(self, _request: Any, username: str = "", password: str = "") -> Any:
        from django.contrib.auth.models import User

        if not username or username != password:
            return None
        return User.objects.get_or_create(username=username, defaults={"email": f"{username}@example.com"})[0]

    def get_user(self, user_id: int) -> Any:
        from django.contrib.auth.models import User

        return User.objects.filter(pk=user_id).first()


def new_validator() -> Any:
    """Return what decides about requests. It stands for the class, which can be made only after Django has started."""
    from oauth2_provider.oauth2_validators import OAuth2Validator

    class Validator(OAuth2Validator):  # type: ignore[misc]
        def get_additional_claims(self, request: Any) -> dict[str, Any]:
            user = request.user
            name = f"{user.username} of the tests"
            return {"sub": user.username, "name": name, "email": user.email, "email_verified": True}

    return Validator()


class Quiet(WSGIRequestHandler):
    def log_message(self, *_: Any) -> None:
        pass


urlpatterns: list[Any] = []


def main(client_id: str, secret: str, redirect_uri: str) -> None:
    configure()
    application = get_wsgi_application()
    django.setup()
    from django.contrib.auth.views import LoginView
    from oauth2_provider.models import Application

    urlpatterns.append(path("login/", LoginView.as_view()))
    urlpatterns.append(path("o/", include("oauth2_provider.urls", namespace="oauth2_provider")))
    call_command("migrate", run_syncdb=True, verbosity=0)
    Application.objects.create(
        client_id=client_id,
        client_secret=secret,
        redirect_uris=redirect_uri,
        client_type=Application.CLIENT_CONFIDENTIAL,
        authorization_grant_type=Application.GRANT_AUTHORIZATION_CODE,
        algorithm=Application.RS256_ALGORITHM,
        skip_authorization=True,
    )
    with make_server("127.0.0.1", 0, application, handler_class=Quiet) as server:
        print(f"http://127.0.0.1:{server.server_port}/o", flush=True)
        server.serve_forever()


if __name__ == "__main__":
    main(*sys.argv[1:4])
