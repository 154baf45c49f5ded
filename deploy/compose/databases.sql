-- A database and a role for each component, as docs/guides/operating.md has them.
\getenv core_password CORE_DATABASE_PASSWORD
\getenv audience_password AUDIENCE_DATABASE_PASSWORD

CREATE ROLE soundmark_core LOGIN PASSWORD :'core_password';
CREATE DATABASE soundmark_core OWNER soundmark_core ENCODING 'UTF8' TEMPLATE template0;
REVOKE CONNECT ON DATABASE soundmark_core FROM PUBLIC;

CREATE ROLE soundmark_audience LOGIN PASSWORD :'audience_password';
CREATE DATABASE soundmark_audience OWNER soundmark_audience ENCODING 'UTF8' TEMPLATE template0;
REVOKE CONNECT ON DATABASE soundmark_audience FROM PUBLIC;
