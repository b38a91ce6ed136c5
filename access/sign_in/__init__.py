"""Sign-in: passwords, second factors and single sign-on of people, by django-allauth."""
