"""Everything on one machine: PostgreSQL from a wheel, and the processes of `soundmark up` under supervision."""
