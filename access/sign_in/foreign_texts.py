"""Foreign texts: what pages of signing in say in the words of allauth, whose own Chinese addresses people otherwise than this product.

Named here, they are among the messages of this product, which come before those of its packages.
"""

from __future__ import annotations

from django.utils.translation import gettext_noop

TEXTS = (
    gettext_noop("The username and/or password you specified are not correct."),
    gettext_noop("The email address and/or password you specified are not correct."),
    gettext_noop("Please type your current password."),
    gettext_noop("The password reset token was invalid."),
    gettext_noop("Be patient, you are sending too many requests."),
    gettext_noop("Use your password"),
    gettext_noop("You cannot deactivate two-factor authentication."),
    gettext_noop("You cannot generate recovery codes without having two-factor authentication enabled."),
    gettext_noop("Your account has no password set up."),
    gettext_noop(
        "Enabling passwordless operation allows you to sign in using just this key, but imposes additional requirements such as "
        "biometrics or PIN protection."
    ),
)
