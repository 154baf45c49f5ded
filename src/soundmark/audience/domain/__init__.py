"""What Audience is about: values and rules that know no database and no HTTP."""
