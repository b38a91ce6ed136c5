"""Console addresses of people, grants and consents."""

from django.urls import path

from access import views

urlpatterns = [
    path("sign-in", views.sign_in, name="sign_in"),
    path("sign-out", views.sign_out, name="sign_out"),
    path("tenant", views.switch_tenant, name="switch_tenant"),
    path("grants", views.grants, name="grants"),
    path("grants/new", views.grant_new, name="grant_new"),
    path("grants/<grt:grant_id>", views.grant, name="grant"),
    path("grants/<grt:grant_id>/revoke", views.grant_revoke, name="grant_revoke"),
    path("consents", views.consents, name="consents"),
    path("consents/<cns:consent_id>", views.consent, name="consent"),
    path("consents/<cns:consent_id>/decision", views.consent_decide, name="consent_decide"),
]
