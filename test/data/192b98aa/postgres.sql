-- A store of commit 192b98aa of 2026-11-24 (postgres), written by pg_dump --inserts (session settings left out) while it ran.
-- test/store/upgrade.test.ts tells how it was made. Never changed.
CREATE TABLE public.account (
    id text NOT NULL,
    kind text NOT NULL,
    balance_n bigint NOT NULL,
    funded_n bigint NOT NULL,
    first_paid_at bigint,
    exhausted_at bigint,
    merged_into text,
    created_at bigint NOT NULL,
    CONSTRAINT account_balance_n_check CHECK ((balance_n >= 0)),
    CONSTRAINT account_funded_n_check CHECK ((funded_n >= 0))
);
CREATE TABLE public.agent (
    id text NOT NULL,
    account_id text NOT NULL,
    name text NOT NULL,
    token_hash text NOT NULL,
    profiles text,
    read_only bigint NOT NULL,
    expires_at bigint,
    revoked_at bigint,
    created_at bigint NOT NULL
);
CREATE TABLE public.allowance_month (
    account_id text NOT NULL,
    month bigint NOT NULL,
    used_cu bigint NOT NULL,
    CONSTRAINT allowance_month_used_cu_check CHECK ((used_cu >= 0))
);
CREATE TABLE public.api_key (
    id text NOT NULL,
    account_id text NOT NULL,
    agent_id text,
    name text NOT NULL,
    prefix text NOT NULL,
    default_profile text,
    allowed_profiles text,
    revision bigint NOT NULL,
    created_at bigint NOT NULL,
    revoked_at bigint,
    consistency text
);
CREATE TABLE public.audit_result (
    part text NOT NULL,
    state text NOT NULL,
    problem_count bigint NOT NULL,
    problems text NOT NULL,
    runner text NOT NULL,
    node text,
    checked_at bigint NOT NULL
);
CREATE TABLE public.change_log (
    seq bigint NOT NULL,
    xid xid8 DEFAULT pg_current_xact_id() NOT NULL,
    at bigint DEFAULT ((EXTRACT(epoch FROM clock_timestamp()) * (1000)::numeric))::bigint NOT NULL,
    topic text NOT NULL,
    ref text NOT NULL
);
ALTER TABLE public.change_log ALTER COLUMN seq ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.change_log_seq_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE public.claim_link (
    token_hash text NOT NULL,
    account_id text NOT NULL,
    key_id text NOT NULL,
    created_at bigint NOT NULL,
    expires_at bigint NOT NULL,
    ended text
);
CREATE TABLE public.connection (
    id text NOT NULL,
    token_hash text NOT NULL,
    approval_hash text NOT NULL,
    name text NOT NULL,
    state text NOT NULL,
    account_id text,
    agent_id text,
    profiles text,
    read_only bigint NOT NULL,
    agent_expires_at bigint,
    created_at bigint NOT NULL,
    expires_at bigint NOT NULL,
    decided_at bigint,
    polled_at bigint
);
CREATE TABLE public.console_session (
    id_hash text NOT NULL,
    role text NOT NULL,
    token_ref text NOT NULL,
    created_at bigint NOT NULL,
    expires_at bigint NOT NULL
);
CREATE TABLE public.credit_lease (
    account_id text NOT NULL,
    node_id text NOT NULL,
    epoch bigint NOT NULL,
    granted_n bigint NOT NULL,
    spent_n bigint NOT NULL,
    CONSTRAINT credit_lease_spent CHECK (((spent_n >= 0) AND (spent_n <= granted_n)))
);
CREATE TABLE public.custom_access (
    account_id text NOT NULL,
    source text NOT NULL,
    from_at bigint NOT NULL,
    until_at bigint NOT NULL,
    CONSTRAINT custom_access_time CHECK ((until_at > from_at))
);
CREATE TABLE public.feedback (
    id text NOT NULL,
    account_id text,
    category text,
    request_id text,
    operation text,
    message text NOT NULL,
    created_at bigint NOT NULL
);
CREATE TABLE public.filter (
    id text NOT NULL,
    owner text NOT NULL,
    method text NOT NULL,
    params text NOT NULL,
    profile text NOT NULL,
    named text NOT NULL,
    chain text NOT NULL,
    strategy text NOT NULL,
    pin text,
    node_id text NOT NULL,
    claim bigint NOT NULL,
    answering bigint NOT NULL,
    mark text,
    polled_at bigint NOT NULL
);
CREATE TABLE public.history_hour (
    profile text NOT NULL,
    chain text NOT NULL,
    hour bigint NOT NULL,
    provider text NOT NULL,
    class text NOT NULL,
    writer text NOT NULL,
    alias text NOT NULL,
    counts text NOT NULL
);
CREATE TABLE public.job (
    name text NOT NULL,
    node_id text NOT NULL,
    due_at bigint NOT NULL,
    claimed_until bigint NOT NULL
);
CREATE TABLE public.key_secret (
    secret_hash text NOT NULL,
    key_id text NOT NULL,
    valid_until bigint,
    created_at bigint NOT NULL
);
CREATE TABLE public.kysely_migration (
    name character varying(255) NOT NULL,
    "timestamp" character varying(255) NOT NULL
);
CREATE TABLE public.kysely_migration_lock (
    id character varying(255) NOT NULL,
    is_locked integer DEFAULT 0 NOT NULL
);
CREATE TABLE public.ledger_entry (
    tx_id text NOT NULL,
    "position" bigint NOT NULL,
    book text NOT NULL,
    account_id text,
    amount_n bigint NOT NULL,
    CONSTRAINT ledger_entry_account CHECK (((book = 'account'::text) = (account_id IS NOT NULL)))
);
CREATE TABLE public.ledger_tx (
    id text NOT NULL,
    idem_key text NOT NULL,
    kind text NOT NULL,
    created_at bigint NOT NULL
);
CREATE TABLE public.node (
    id text NOT NULL,
    epoch bigint NOT NULL,
    region text NOT NULL,
    state text NOT NULL,
    flush_seq bigint NOT NULL,
    heartbeat_at bigint NOT NULL,
    skew_ms bigint DEFAULT 0 NOT NULL,
    process_id text
);
CREATE UNLOGGED TABLE public.node_report (
    node_id text NOT NULL,
    at bigint NOT NULL,
    report text NOT NULL
);
CREATE TABLE public.old_form (
    name text NOT NULL,
    requests bigint NOT NULL,
    last_seen_at bigint,
    quiet_ms bigint NOT NULL,
    CONSTRAINT old_form_quiet_ms_check CHECK ((quiet_ms >= 0))
);
CREATE TABLE public.operator_action (
    id text NOT NULL,
    actor text NOT NULL,
    address text NOT NULL,
    action text NOT NULL,
    target text,
    detail text,
    outcome text NOT NULL,
    node text,
    created_at bigint NOT NULL
);
CREATE TABLE public.operator_cordon (
    profile text NOT NULL,
    chain text NOT NULL,
    provider text NOT NULL,
    reason text,
    actor text NOT NULL,
    created_at bigint NOT NULL
);
CREATE TABLE public.operator_reload (
    slot text NOT NULL,
    id text NOT NULL,
    node text NOT NULL,
    actor text NOT NULL,
    address text NOT NULL,
    asked_at bigint NOT NULL
);
CREATE TABLE public.profile (
    id text NOT NULL,
    account_id text NOT NULL,
    slug text NOT NULL,
    revision bigint NOT NULL,
    sealed text,
    created_at bigint NOT NULL,
    updated_at bigint NOT NULL
);
CREATE TABLE public.profile_revision (
    profile_id text NOT NULL,
    revision bigint NOT NULL,
    sealed text NOT NULL,
    saved_at bigint NOT NULL
);
CREATE TABLE public.provider_quota (
    scope text NOT NULL,
    day_at bigint NOT NULL,
    day_spent bigint NOT NULL,
    month_at bigint NOT NULL,
    month_spent bigint NOT NULL
);
CREATE UNLOGGED TABLE public.provider_share (
    scope text NOT NULL,
    process_id text NOT NULL,
    share double precision NOT NULL,
    used double precision NOT NULL,
    wanted double precision,
    at bigint NOT NULL
);
CREATE TABLE public.purchase (
    id text NOT NULL,
    payment_key text NOT NULL,
    offer_id text NOT NULL,
    offer_claim text,
    fingerprint text NOT NULL,
    purpose text NOT NULL,
    units bigint NOT NULL,
    amount_n bigint NOT NULL,
    rail text NOT NULL,
    protocol text NOT NULL,
    chain_id bigint NOT NULL,
    network text NOT NULL,
    token text NOT NULL,
    recipient text NOT NULL,
    payer text NOT NULL,
    material text NOT NULL,
    is_sent bigint NOT NULL,
    valid_until bigint,
    state text NOT NULL,
    reason text,
    tx_hash text,
    settled_ref text,
    fulfilment text,
    blank_at bigint,
    created_at bigint NOT NULL,
    ended_at bigint,
    look_at bigint NOT NULL,
    looks bigint NOT NULL,
    lease_node text,
    lease_until bigint,
    CONSTRAINT purchase_amount CHECK ((amount_n = (units * 1000))),
    CONSTRAINT purchase_ended CHECK (((ended_at IS NOT NULL) = (state = ANY (ARRAY['settled'::text, 'failed'::text])))),
    CONSTRAINT purchase_failed CHECK (((reason IS NOT NULL) = (state = 'failed'::text))),
    CONSTRAINT purchase_fulfilled CHECK (((fulfilment IS NULL) OR (state = 'settled'::text))),
    CONSTRAINT purchase_settled CHECK (((settled_ref IS NOT NULL) = (state = 'settled'::text))),
    CONSTRAINT purchase_units_check CHECK ((units > 0))
);
CREATE TABLE public.purchase_submission (
    purchase_id text NOT NULL,
    "position" bigint NOT NULL,
    tx_hash text NOT NULL,
    raw text,
    wallet_id text,
    nonce bigint,
    created_at bigint NOT NULL,
    passed_at bigint,
    CONSTRAINT purchase_submission_nonce CHECK (((wallet_id IS NOT NULL) = (nonce IS NOT NULL)))
);
CREATE UNLOGGED TABLE public.rate_demand (
    scope text NOT NULL,
    node_id text NOT NULL,
    wanted double precision NOT NULL,
    at bigint NOT NULL
);
CREATE UNLOGGED TABLE public.rate_limit (
    scope text NOT NULL,
    full_at double precision NOT NULL,
    step_ms double precision NOT NULL,
    burst double precision NOT NULL,
    wanted double precision NOT NULL,
    owed double precision NOT NULL,
    part double precision NOT NULL,
    granted double precision NOT NULL
);
CREATE TABLE public.session_call (
    channel_id text NOT NULL,
    "position" bigint NOT NULL,
    voucher_units bigint NOT NULL,
    fingerprint text NOT NULL,
    challenge_id text NOT NULL,
    charged_units bigint NOT NULL,
    accepted_units bigint NOT NULL,
    spent_units bigint NOT NULL,
    cu bigint NOT NULL,
    status bigint NOT NULL,
    body text,
    reruns bigint NOT NULL,
    created_at bigint NOT NULL
);
CREATE TABLE public.session_channel (
    id text NOT NULL,
    chain_id bigint NOT NULL,
    network text NOT NULL,
    payer text NOT NULL,
    descriptor text NOT NULL,
    state text NOT NULL,
    reason text,
    deposit_units bigint NOT NULL,
    spent_units bigint NOT NULL,
    settled_units bigint NOT NULL,
    vouchers text NOT NULL,
    calls bigint NOT NULL,
    owed_since bigint,
    close_requested_at bigint,
    seen_block bigint NOT NULL,
    look_at bigint NOT NULL,
    looks bigint NOT NULL,
    created_at bigint NOT NULL,
    ended_at bigint,
    CONSTRAINT session_channel_ended CHECK (((ended_at IS NOT NULL) = (state = ANY (ARRAY['closed'::text, 'failed'::text])))),
    CONSTRAINT session_channel_money CHECK (((0 <= settled_units) AND (settled_units <= spent_units) AND (spent_units <= deposit_units)))
);
CREATE TABLE public.session_hold (
    channel_id text NOT NULL,
    node_id text NOT NULL,
    epoch bigint NOT NULL,
    number bigint NOT NULL,
    units bigint NOT NULL,
    voucher_units bigint NOT NULL,
    fingerprint text NOT NULL,
    challenge_id text NOT NULL,
    created_at bigint NOT NULL,
    CONSTRAINT session_hold_units_check CHECK ((units >= 0))
);
CREATE TABLE public.session_owner (
    channel_id text NOT NULL,
    node_id text NOT NULL,
    epoch bigint NOT NULL,
    is_exclusive bigint NOT NULL,
    since bigint NOT NULL,
    is_wanted bigint NOT NULL
);
CREATE TABLE public.session_transaction (
    tx_hash text NOT NULL,
    channel_id text NOT NULL,
    kind text NOT NULL,
    raw text NOT NULL,
    units bigint NOT NULL,
    moved_units bigint NOT NULL,
    valid_until bigint NOT NULL,
    state text NOT NULL,
    reason text,
    created_at bigint NOT NULL,
    ended_at bigint,
    CONSTRAINT session_transaction_ended CHECK (((ended_at IS NULL) = (state = 'written'::text))),
    CONSTRAINT session_transaction_moved_units_check CHECK ((moved_units >= 0))
);
CREATE TABLE public.settlement_wallet (
    id text NOT NULL,
    next_nonce bigint NOT NULL,
    CONSTRAINT settlement_wallet_next_nonce_check CHECK ((next_nonce >= 0))
);
CREATE TABLE public.usage_hour (
    account_id text NOT NULL,
    key_id text NOT NULL,
    method text NOT NULL,
    hour bigint NOT NULL,
    calls bigint NOT NULL,
    cu bigint NOT NULL,
    charge_n bigint NOT NULL,
    cached_calls bigint DEFAULT 0 NOT NULL,
    cached_cu bigint DEFAULT 0 NOT NULL
);
INSERT INTO public.account VALUES ('acc_0mwsaq540aic9e9vl82l', 'anonymous', 0, 25000000, NULL, NULL, 'acc_0mwsaq4scrro0lx7757u', 1795379713632);
INSERT INTO public.account VALUES ('acc_0mwsaq55qkrqerxvtn3d', 'account', 0, 0, NULL, NULL, NULL, 1795379713694);
INSERT INTO public.account VALUES ('acc_0mwsaq4gmgq9z5t1hu5r', 'anonymous', 374910000, 375000000, 1795379712790, NULL, NULL, 1795379712790);
INSERT INTO public.account VALUES ('acc_0mwsaq4scrro0lx7757u', 'account', 3516225000, 3525000000, 1795379713309, NULL, NULL, 1795379713212);
INSERT INTO public.agent VALUES ('agt_0mwsaq4sc6omlftbew8b', 'acc_0mwsaq4scrro0lx7757u', 'first', 'xm-X6syoJETwxNOvIGdbPeczM-OSEA5D7vFYVmI9Blg', NULL, 0, NULL, NULL, 1795379713212);
INSERT INTO public.agent VALUES ('agt_0mwsaq55qa24x4ar8b3i', 'acc_0mwsaq55qkrqerxvtn3d', 'free', 'y2gmoFTsuMkEuQuQGkQ6CBf8x47tpTLxdbp4Furk12M', NULL, 0, NULL, NULL, 1795379713694);
INSERT INTO public.allowance_month VALUES ('acc_0mwsaq55qkrqerxvtn3d', 682, 6);
INSERT INTO public.api_key VALUES ('key_0mwsaq4gmnhloixxf87n', 'acc_0mwsaq4gmgq9z5t1hu5r', NULL, 'agent', 'svc_ak_8AU33', NULL, NULL, 1, 1795379712790, NULL, NULL);
INSERT INTO public.api_key VALUES ('key_0mwsaq52dz7gvrzu60kf', 'acc_0mwsaq4scrro0lx7757u', 'agt_0mwsaq4sc6omlftbew8b', 'second', 'svc_ak_l2Ode', NULL, NULL, 2, 1795379713573, NULL, NULL);
INSERT INTO public.api_key VALUES ('key_0mwsaq52su327sob09b9', 'acc_0mwsaq4scrro0lx7757u', 'agt_0mwsaq4sc6omlftbew8b', 'third', 'svc_ak_uphps', NULL, NULL, 2, 1795379713588, 1795379713595, NULL);
INSERT INTO public.api_key VALUES ('key_0mwsaq5408d5bclmlwpv', 'acc_0mwsaq4scrro0lx7757u', NULL, 'claimed', 'svc_ak_306nC', NULL, NULL, 2, 1795379713632, NULL, NULL);
INSERT INTO public.api_key VALUES ('key_0mwsaq55q5abc0jr2ma6', 'acc_0mwsaq55qkrqerxvtn3d', 'agt_0mwsaq55qa24x4ar8b3i', 'free', 'svc_ak_GKFWP', NULL, NULL, 1, 1795379713694, NULL, NULL);
INSERT INTO public.api_key VALUES ('key_0mwsaq4scjwqe1je0t0a', 'acc_0mwsaq4scrro0lx7757u', 'agt_0mwsaq4sc6omlftbew8b', 'first', 'svc_ak_6adXv', NULL, NULL, 2, 1795379713212, NULL, 'caller');
INSERT INTO public.audit_result VALUES ('books', 'balanced', 0, '[]', 'operator', 'first', 1795849933916);
INSERT INTO public.change_log OVERRIDING SYSTEM VALUE VALUES (1, '804', 1795849933530, 'operator', '{"node":"first","kind":"cordons"}');
INSERT INTO public.change_log OVERRIDING SYSTEM VALUE VALUES (2, '808', 1795849933551, 'key', 'key_0mwsaq4scjwqe1je0t0a');
INSERT INTO public.claim_link VALUES ('vCbVxAtFlP043n3mwuNL_0wOfLZ196didhFqUZf-tvo', 'acc_0mwsaq4gmgq9z5t1hu5r', 'key_0mwsaq4gmnhloixxf87n', 1795379713738, 1795380313738, NULL);
INSERT INTO public.connection VALUES ('con_0mwsaq57ilqsbrp5l9fa', 'M9kGkzGR-TQVP6XocNN3E8DY1qRTiApanqHTAsGWFAc', 'npgZhLbAPkXzeqWE_LQvCDXKjBTn4sNx5_Yf2lqez6g', 'An assistant', 'pending', NULL, NULL, NULL, 0, NULL, 1795379713758, 1795380613758, NULL, NULL);
INSERT INTO public.console_session VALUES ('Vq9TPW8CCmOv2UHEF7TeaMf4zfhfhUMPKy8OdSHYhhQ', 'account', 'agt_0mwsaq4sc6omlftbew8b', 1795849933538, 1795893133538);
INSERT INTO public.credit_lease VALUES ('acc_0mwsaq4scrro0lx7757u', 'second', 1795849932227, 4145000, 160000);
INSERT INTO public.credit_lease VALUES ('acc_0mwsaq4scrro0lx7757u', 'first', 1795849928885, 4145000, 205000);
INSERT INTO public.custom_access VALUES ('acc_0mwsaq4scrro0lx7757u', 'purchase:pur_0mwsaq4y8k4d3vo8wtvd', 1795379713535, 1795552513535);
INSERT INTO public.feedback VALUES ('fbk_0mwsaq57y7uzw8oo256t', 'acc_0mwsaq4scrro0lx7757u', NULL, NULL, NULL, 'All is well.', 1795379713774);
INSERT INTO public.filter VALUES ('0x5aae30506868d093d1983499b058d770fb', 'key key_0mwsaq4scjwqe1je0t0a ethereum', 'eth_newBlockFilter', '[]', 'premium', 'premium', 'ethereum', 'load-balanced', NULL, 'first', 1, 0, '{"from":7,"hashes":"I9NTHJHduxrqUcOhWFrOL6zzM+2adXuvtjW/iogKma1+QH4OIMow5yoE8boFEHYKgK0r877cB2lUspgsu37bAw==","rooted":true,"start":0,"unsureFrom":null,"logs":null}', 1795849933715);
INSERT INTO public.filter VALUES ('0x7700c6d5a05f1f77e32b568e9e180fc5f6', 'key key_0mwsaq4scjwqe1je0t0a ethereum', 'eth_newBlockFilter', '[]', 'premium', 'premium', 'ethereum', 'load-balanced', NULL, 'second', 1, 0, '{"from":7,"hashes":"I9NTHJHduxrqUcOhWFrOL6zzM+2adXuvtjW/iogKma1+QH4OIMow5yoE8boFEHYKgK0r877cB2lUspgsu37bAw==","rooted":true,"start":0,"unsureFrom":null,"logs":null}', 1795849933881);
INSERT INTO public.filter VALUES ('0x5b8714b5702e88912cc007ab1c9424e95d', 'key key_0mwsaq4scjwqe1je0t0a ethereum', 'eth_newFilter', '[{"address":"0x0000000000000000000000000000000000000001"}]', 'premium', 'premium', 'ethereum', 'load-balanced', NULL, 'first', 1, 0, '{"from":9,"hashes":"WB54Bx+Xz2OZUS52DqEvq0Srs6LrXtovWptNNtEWeNUf1mHH0+lf0OzHy+nYTpF0NumN9DJgIuoaKHCrw0ODEDXYqaNRMesb7Atm7BXlvsVP34MvvDRp9VgmZLC1afncvdrJCDs1a88Bzmcp4qfcWX4I+j3hvxxgnIg8E3g8To/8MdLMq8NTQh+xAxFTr1yfAy5jmNNjNaGpHjSOSwSXS3pxxdhXeezR4fh8xJUf3N85YToaya+q9Q2XBrhNN9aEGveszhde5z34tQL5YMCnaebPj4TPuBgNIBw0bBPa8V2dPEc+4DUvOCWfRg3NpArr+Tkhumw5+0OmmGxf39JmSCMdY+joyodCaytz7e4rD8hg7wcs4Iakf9VqC7a+5REedZb17ssTxa8/RoZ1FPbv9IJxAbuA5bgE0g+VaVXa/NodfUvkCfgoTHwhSg6sWA+Bht4B+U4LxRPt1Yh3XuyP8mqK1n5RPeBbq+eoMU2a1yd4e/3wnjXtnDeD7TC15um8Cm1gMR3w7w93JECB6LU2DzBHBmwyDKAcO5FSBQphhxs5J4Os43ser65+uDuRZikINEdcQu2/RBONrdJBvBg3wwxwx7068ORF0wef6lW/v0hmhTRQayt3kHLwqTXtJPwSVC/xuuxwMCYfgk9p+36ju31ExD+VoEw9sU76EXQnpDGpUOlSPq7tYZhajoJMk4XdF0klghCSbvX2jyJF6wiE9RWKzx4dmN6OB9c7s+Hn0cLKe3kOzGyr6hM83o1FE4EAOtMGqDQMiFVIgO1FY24puc6KQuABK4BHj9FfWAd75vYBiJvjBQtZ6ahXGWuPyrrLSMQ9NIUrTKROgtGxQ8uh/ralTmvMM2YPP9wh5e42X/Q22lln9SDfisu0U+R55tCj86oPVDPU0V47E4VhUTeLuGVaKXBqajJ+y44YKVzYtNRj8xn9jeQ+DhLmIWUKhBg7cvxH+21nCuz4v961eKpYOTfzAIRU9VVqLdHZgYcxDhtR3HJZztxIlT4lOgf2SKcAwqD+RpjdRUexvZLq1kCwkwJ8lmQqjddo8lwpOuTlexCz7BtmZI2IfgHoaoqaKcWCCOhl/JwTgl341G1BuHas8h2sh6mTTixI3iaZHaD0oKE6KYoZFgcfoTl/qMxsetiD48P8ikF5jIMhOjEm89NOC8khWLgOm00U5vPr75JsV2m/CYLeXIfH4hHCZeO53BzsO0oFDJlIulb89yuxWHykdcaTmqRYpKHahCJBWjCmSUcz1Gpgflo9kMrnG4Trwo+jooMPH5bNb9hpa4o1TkHd+/lGeWz+LfqcvQHZ/D79DbiZDfm2pHqc53WmVwhy406Nb8lnmMUfAr9ddX/ZfeLJYo1fvAzwfKUDWwYv8u+o4hkSetgI/BExFW0YvdGnW817tRuEw31LnMs69gw3KHHNhX8+IY3puUORDNNhu6ltSCEih4L6KanDOaDP2H6ONcclfiWD8U7UQonvIbduhZjrMOlqi5gPvaeJR7NIRWERXm0prBWIAudvbM7YdmxcxhsbhNUm0M4mVVANcphsKXfhogWSHGT4YBK3dkxWSdp+JwBQPV7dJI44O2iMjEmeOMN4vAHglvbTQaw9cppa2Wf6YlmhP3hrJj2F6wtpKBsKlk7X2aJDZ03NctMdXg+nxgifAIr1MbDLf2uBL1C1dO41yKQeT3l15oevX25fJ3Wn+b4WRkmhmS7PZLNhVe9RDT8WOonsQqiZ+aQQfuExwSJlTK1iaGUGYG+RqLXuL3vRpcR+gGmg4r2YL4KuR317FYgDrdHr+5KEhW2mhLj3dJnGO6F75sctwgwQtWd33CVHL32yj4F8t6BEA4PWua14C9n622YohPDTYy2ktiks385F9AEEoY2GjG2+C8f0lIOdcwub1JO4JKTxlpmVVOrgVUdhMlGBtiXUWWIcUaXT68IZGMqREmltdalfwSYjBuKJ0djWrcEmAv1rwlFQIzUUk4BzgvqlxMGoS8Bpg7zcFT9GNHU1yJKOa9PO/olGCV9PRbg69ftCIpc+8lXvn+UkyQsJGCocXxakwyVr4oSWZO8Fk+d/1JQDsYZGceh8Yt4q2S+UmNhe3voGoEwoprAYRuZt6An6tPsujoCokbA7wP+oTFJKNu6YSptmlg4PXj5OPBJiYRUfURRXFKFKKWr1Er8ta7Hf4vOlCKfRowpbLYqBIHKt4p0IyERq60lV9pzjKq1tO3Yp5kszga7WGX4EOqPotrmra+D2V8dR2a/Nw/gn7LDWED1nSNDwoKtHAZBzuCg7azlb/JQONV/Sdj75mTpR+6yXJc8eK2sYExqE/oWJV9OTzdF8MQ2/WfQnMkJqkWbGTTPwPfpPVsEK32hEof+MUx9KD4RXABq+9QvctRV32w0xcHC3deWuyQPaSfTy0XEYHpRB0mby9xVNBxBv9MT1V9vY/x3zBNIwmvPdbtIgP8nlTkAQldLh/1Wn4vrG1m+sUUwzu85f843SA/YW6WzUIqE4XHUGlDPuHgtJQFFF92uFk8lvZXnyRPcc5LZESREgT9P+vb9q1ViMpbJyIhva15KZjEOqGXHErFggEnD3P88ctXV7T+cSvMRAeJaJDMXTi7Zimz5Ad1Ta/PBnsA0YfnxIbWbdGd/T7T4bHAbfu4+or5b3sICAIBUu2Gy8Z/S06dS7SKT1iXyQBoAhSnr2aJ+l6FJRV8lz9SxRjzWpA2tS0ZgydXS6rujWhIWEo1wGleiFiXXSKC7dxFt6jNdl0WFwQnGoLSF2tlNbOROIGg==","rooted":false,"start":null,"unsureFrom":null,"logs":[]}', 1795849933712);
INSERT INTO public.filter VALUES ('0xbb9b6e8520740d19dd4054c5b796d7f702', 'key key_0mwsaq4scjwqe1je0t0a ethereum', 'eth_newFilter', '[{"address":"0x0000000000000000000000000000000000000001"}]', 'premium', 'premium', 'ethereum', 'load-balanced', NULL, 'second', 1, 0, '{"from":9,"hashes":"WB54Bx+Xz2OZUS52DqEvq0Srs6LrXtovWptNNtEWeNUf1mHH0+lf0OzHy+nYTpF0NumN9DJgIuoaKHCrw0ODEDXYqaNRMesb7Atm7BXlvsVP34MvvDRp9VgmZLC1afncvdrJCDs1a88Bzmcp4qfcWX4I+j3hvxxgnIg8E3g8To/8MdLMq8NTQh+xAxFTr1yfAy5jmNNjNaGpHjSOSwSXS3pxxdhXeezR4fh8xJUf3N85YToaya+q9Q2XBrhNN9aEGveszhde5z34tQL5YMCnaebPj4TPuBgNIBw0bBPa8V2dPEc+4DUvOCWfRg3NpArr+Tkhumw5+0OmmGxf39JmSCMdY+joyodCaytz7e4rD8hg7wcs4Iakf9VqC7a+5REedZb17ssTxa8/RoZ1FPbv9IJxAbuA5bgE0g+VaVXa/NodfUvkCfgoTHwhSg6sWA+Bht4B+U4LxRPt1Yh3XuyP8mqK1n5RPeBbq+eoMU2a1yd4e/3wnjXtnDeD7TC15um8Cm1gMR3w7w93JECB6LU2DzBHBmwyDKAcO5FSBQphhxs5J4Os43ser65+uDuRZikINEdcQu2/RBONrdJBvBg3wwxwx7068ORF0wef6lW/v0hmhTRQayt3kHLwqTXtJPwSVC/xuuxwMCYfgk9p+36ju31ExD+VoEw9sU76EXQnpDGpUOlSPq7tYZhajoJMk4XdF0klghCSbvX2jyJF6wiE9RWKzx4dmN6OB9c7s+Hn0cLKe3kOzGyr6hM83o1FE4EAOtMGqDQMiFVIgO1FY24puc6KQuABK4BHj9FfWAd75vYBiJvjBQtZ6ahXGWuPyrrLSMQ9NIUrTKROgtGxQ8uh/ralTmvMM2YPP9wh5e42X/Q22lln9SDfisu0U+R55tCj86oPVDPU0V47E4VhUTeLuGVaKXBqajJ+y44YKVzYtNRj8xn9jeQ+DhLmIWUKhBg7cvxH+21nCuz4v961eKpYOTfzAIRU9VVqLdHZgYcxDhtR3HJZztxIlT4lOgf2SKcAwqD+RpjdRUexvZLq1kCwkwJ8lmQqjddo8lwpOuTlexCz7BtmZI2IfgHoaoqaKcWCCOhl/JwTgl341G1BuHas8h2sh6mTTixI3iaZHaD0oKE6KYoZFgcfoTl/qMxsetiD48P8ikF5jIMhOjEm89NOC8khWLgOm00U5vPr75JsV2m/CYLeXIfH4hHCZeO53BzsO0oFDJlIulb89yuxWHykdcaTmqRYpKHahCJBWjCmSUcz1Gpgflo9kMrnG4Trwo+jooMPH5bNb9hpa4o1TkHd+/lGeWz+LfqcvQHZ/D79DbiZDfm2pHqc53WmVwhy406Nb8lnmMUfAr9ddX/ZfeLJYo1fvAzwfKUDWwYv8u+o4hkSetgI/BExFW0YvdGnW817tRuEw31LnMs69gw3KHHNhX8+IY3puUORDNNhu6ltSCEih4L6KanDOaDP2H6ONcclfiWD8U7UQonvIbduhZjrMOlqi5gPvaeJR7NIRWERXm0prBWIAudvbM7YdmxcxhsbhNUm0M4mVVANcphsKXfhogWSHGT4YBK3dkxWSdp+JwBQPV7dJI44O2iMjEmeOMN4vAHglvbTQaw9cppa2Wf6YlmhP3hrJj2F6wtpKBsKlk7X2aJDZ03NctMdXg+nxgifAIr1MbDLf2uBL1C1dO41yKQeT3l15oevX25fJ3Wn+b4WRkmhmS7PZLNhVe9RDT8WOonsQqiZ+aQQfuExwSJlTK1iaGUGYG+RqLXuL3vRpcR+gGmg4r2YL4KuR317FYgDrdHr+5KEhW2mhLj3dJnGO6F75sctwgwQtWd33CVHL32yj4F8t6BEA4PWua14C9n622YohPDTYy2ktiks385F9AEEoY2GjG2+C8f0lIOdcwub1JO4JKTxlpmVVOrgVUdhMlGBtiXUWWIcUaXT68IZGMqREmltdalfwSYjBuKJ0djWrcEmAv1rwlFQIzUUk4BzgvqlxMGoS8Bpg7zcFT9GNHU1yJKOa9PO/olGCV9PRbg69ftCIpc+8lXvn+UkyQsJGCocXxakwyVr4oSWZO8Fk+d/1JQDsYZGceh8Yt4q2S+UmNhe3voGoEwoprAYRuZt6An6tPsujoCokbA7wP+oTFJKNu6YSptmlg4PXj5OPBJiYRUfURRXFKFKKWr1Er8ta7Hf4vOlCKfRowpbLYqBIHKt4p0IyERq60lV9pzjKq1tO3Yp5kszga7WGX4EOqPotrmra+D2V8dR2a/Nw/gn7LDWED1nSNDwoKtHAZBzuCg7azlb/JQONV/Sdj75mTpR+6yXJc8eK2sYExqE/oWJV9OTzdF8MQ2/WfQnMkJqkWbGTTPwPfpPVsEK32hEof+MUx9KD4RXABq+9QvctRV32w0xcHC3deWuyQPaSfTy0XEYHpRB0mby9xVNBxBv9MT1V9vY/x3zBNIwmvPdbtIgP8nlTkAQldLh/1Wn4vrG1m+sUUwzu85f843SA/YW6WzUIqE4XHUGlDPuHgtJQFFF92uFk8lvZXnyRPcc5LZESREgT9P+vb9q1ViMpbJyIhva15KZjEOqGXHErFggEnD3P88ctXV7T+cSvMRAeJaJDMXTi7Zimz5Ad1Ta/PBnsA0YfnxIbWbdGd/T7T4bHAbfu4+or5b3sICAIBUu2Gy8Z/S06dS7SKT1iXyQBoAhSnr2aJ+l6FJRV8lz9SxRjzWpA2tS0ZgydXS6rujWhIWEo1wGleiFiXXSKC7dxFt6jNdl0WFwQnGoLSF2tlNbOROIGg==","rooted":false,"start":null,"unsureFrom":null,"logs":[]}', 1795849933877);
INSERT INTO public.history_hour VALUES ('premium', 'ethereum', 498847, '', '', 'mx02ohj3-k8c751ty.0', '', '{"calls":30,"latency.1":29,"latency.2":1,"added.0.05":17,"added.0.1":7,"added.0.2":5,"added.1":1}');
INSERT INTO public.history_hour VALUES ('', '', 498847, '', '', 'mx02ohj3-k8c751ty.0', '', '{"calls":30,"latency.1":29,"latency.2":1,"added.0.05":17,"added.0.1":7,"added.0.2":5,"added.1":1}');
INSERT INTO public.history_hour VALUES ('premium', 'ethereum', 498847, 'paid', '', 'mx02ohj3-k8c751ty.0', 'p1', '{"calls":17,"latency.1":17,"lag":2,"circuit.closed":1}');
INSERT INTO public.history_hour VALUES ('premium', 'ethereum', 498847, 'paid', 'cheap', 'mx02ohj3-k8c751ty.0', 'p1', '{"calls":17,"latency.1":17}');
INSERT INTO public.history_hour VALUES ('premium', 'ethereum', 498847, 'paid-2', '', 'mx02ohj3-k8c751ty.0', 'p2', '{"calls":13,"latency.1":13,"lag":1,"circuit.closed":1}');
INSERT INTO public.history_hour VALUES ('premium', 'ethereum', 498847, 'paid-2', 'cheap', 'mx02ohj3-k8c751ty.0', 'p2', '{"calls":13,"latency.1":13}');
INSERT INTO public.history_hour VALUES ('public', 'ethereum', 498847, '', '', 'mx02ohj3-k8c751ty.0', '', '{}');
INSERT INTO public.history_hour VALUES ('public', 'ethereum', 498847, 'open', '', 'mx02ohj3-k8c751ty.0', 'p1', '{"lag":2,"circuit.closed":1}');
INSERT INTO public.history_hour VALUES ('public', 'ethereum', 498847, 'open-2', '', 'mx02ohj3-k8c751ty.0', 'p2', '{"lag":1,"circuit.closed":1}');
INSERT INTO public.job VALUES ('legacy_forms', 'first', 1795850052138, 0);
INSERT INTO public.key_secret VALUES ('7a8NQRZ9aTAdtzla5EMZR4rMOs8eaCfMoZLGN_EkidI', 'key_0mwsaq4gmnhloixxf87n', NULL, 1795379712790);
INSERT INTO public.key_secret VALUES ('xASzbP5pd7Y2k13-f72xUL1fBGfrrJbt3u_1dcJvI18', 'key_0mwsaq4scjwqe1je0t0a', NULL, 1795379713212);
INSERT INTO public.key_secret VALUES ('CdGV5Sb_C6q50Y3ccYgyTQfvvk_7-iJeZ_zXqcyqkO0', 'key_0mwsaq52dz7gvrzu60kf', 1795383313580, 1795379713573);
INSERT INTO public.key_secret VALUES ('9Vb7avLOrHcYHM8Ygbv0sPpO6Mo7LtcCGw2CZ-pvuFU', 'key_0mwsaq52dz7gvrzu60kf', NULL, 1795379713580);
INSERT INTO public.key_secret VALUES ('TRwuTKzWRkdI16fim5qkVM70yTDxqHuq-tfsBW6Nu1s', 'key_0mwsaq52su327sob09b9', NULL, 1795379713588);
INSERT INTO public.key_secret VALUES ('9Y-ylmIJpt8SscWAQ1IQZjpwjy_TosPe2lhyU977Toc', 'key_0mwsaq5408d5bclmlwpv', NULL, 1795379713632);
INSERT INTO public.key_secret VALUES ('cq1uo_eqBguYjaKIjf9GF7VUyxAeCeUeIP_1E6Po8po', 'key_0mwsaq55q5abc0jr2ma6', NULL, 1795379713694);
INSERT INTO public.kysely_migration VALUES ('001_accounts', '2026-11-22T20:35:10.253Z');
INSERT INTO public.kysely_migration VALUES ('002_ledger', '2026-11-22T20:35:10.277Z');
INSERT INTO public.kysely_migration VALUES ('003_usage', '2026-11-22T20:35:10.284Z');
INSERT INTO public.kysely_migration VALUES ('004_entries_in_order', '2026-11-22T20:35:10.288Z');
INSERT INTO public.kysely_migration VALUES ('005_profiles', '2026-11-22T20:35:10.296Z');
INSERT INTO public.kysely_migration VALUES ('006_claims', '2026-11-22T20:35:10.313Z');
INSERT INTO public.kysely_migration VALUES ('007_feedback', '2026-11-22T20:35:10.321Z');
INSERT INTO public.kysely_migration VALUES ('008_purchases', '2026-11-22T20:35:10.350Z');
INSERT INTO public.kysely_migration VALUES ('009_sessions', '2026-11-22T20:35:10.376Z');
INSERT INTO public.kysely_migration VALUES ('010_cluster', '2026-11-28T07:12:08.855Z');
INSERT INTO public.kysely_migration VALUES ('011_session_owners', '2026-11-28T07:12:08.858Z');
INSERT INTO public.kysely_migration VALUES ('012_operator', '2026-11-28T07:12:08.861Z');
INSERT INTO public.kysely_migration VALUES ('014_purchase_accounts', '2026-11-28T07:12:08.862Z');
INSERT INTO public.kysely_migration VALUES ('019_profile_revisions', '2026-11-28T07:12:08.863Z');
INSERT INTO public.kysely_migration VALUES ('020_cached_usage', '2026-11-28T07:12:08.864Z');
INSERT INTO public.kysely_migration VALUES ('021_audit_results', '2026-11-28T07:12:08.865Z');
INSERT INTO public.kysely_migration VALUES ('022_history', '2026-11-28T07:12:08.866Z');
INSERT INTO public.kysely_migration VALUES ('023_provider_limits', '2026-11-28T07:12:08.867Z');
INSERT INTO public.kysely_migration VALUES ('024_filters', '2026-11-28T07:12:08.868Z');
INSERT INTO public.kysely_migration VALUES ('025_node_reports', '2026-11-28T07:12:08.869Z');
INSERT INTO public.kysely_migration VALUES ('026_operator_reload', '2026-11-28T07:12:08.870Z');
INSERT INTO public.kysely_migration VALUES ('027_key_consistency', '2026-11-28T07:12:08.871Z');
INSERT INTO public.kysely_migration_lock VALUES ('migration_lock', 0);
INSERT INTO public.ledger_entry VALUES ('ltx_AornNOu-AONjLEPGPHScolcH', 0, 'account', 'acc_0mwsaq4gmgq9z5t1hu5r', 250000000);
INSERT INTO public.ledger_entry VALUES ('ltx_AornNOu-AONjLEPGPHScolcH', 1, 'payments', NULL, -250000000);
INSERT INTO public.ledger_entry VALUES ('ltx_idC_4yeV_6rHw4mrMks7N0NW', 0, 'account', 'acc_0mwsaq4gmgq9z5t1hu5r', 125000000);
INSERT INTO public.ledger_entry VALUES ('ltx_idC_4yeV_6rHw4mrMks7N0NW', 1, 'payments', NULL, -125000000);
INSERT INTO public.ledger_entry VALUES ('ltx_LJKhqPsGtMqcuKdD_o2iiCGE', 0, 'account', 'acc_0mwsaq4scrro0lx7757u', 1500000000);
INSERT INTO public.ledger_entry VALUES ('ltx_LJKhqPsGtMqcuKdD_o2iiCGE', 1, 'payments', NULL, -1500000000);
INSERT INTO public.ledger_entry VALUES ('ltx_SrVh8b7sv4dRwQe8UxidAMtR', 0, 'revenue', NULL, 2600000000);
INSERT INTO public.ledger_entry VALUES ('ltx_SrVh8b7sv4dRwQe8UxidAMtR', 1, 'payments', NULL, -2600000000);
INSERT INTO public.ledger_entry VALUES ('ltx_rmJkJg5AEoBlxvxqSt3WjDTe', 0, 'account', 'acc_0mwsaq4scrro0lx7757u', 2000000000);
INSERT INTO public.ledger_entry VALUES ('ltx_rmJkJg5AEoBlxvxqSt3WjDTe', 1, 'payments', NULL, -2000000000);
INSERT INTO public.ledger_entry VALUES ('ltx_ZaJFifqE5l4hMXV5abyVQKKv', 0, 'account', 'acc_0mwsaq540aic9e9vl82l', 25000000);
INSERT INTO public.ledger_entry VALUES ('ltx_ZaJFifqE5l4hMXV5abyVQKKv', 1, 'grants', NULL, -25000000);
INSERT INTO public.ledger_entry VALUES ('ltx_6NsYLMG7k3ZW2kMrvg1lpT5v', 0, 'account', 'acc_0mwsaq540aic9e9vl82l', -25000000);
INSERT INTO public.ledger_entry VALUES ('ltx_6NsYLMG7k3ZW2kMrvg1lpT5v', 1, 'account', 'acc_0mwsaq4scrro0lx7757u', 25000000);
INSERT INTO public.ledger_entry VALUES ('ltx__AD4iCq4bu0QZtW6vTMCEZgQ', 0, 'account', 'acc_0mwsaq4scrro0lx7757u', -300000);
INSERT INTO public.ledger_entry VALUES ('ltx__AD4iCq4bu0QZtW6vTMCEZgQ', 1, 'revenue', NULL, 300000);
INSERT INTO public.ledger_entry VALUES ('ltx_CrsXToevqDVKF2juT8QTZSMy', 0, 'account', 'acc_0mwsaq4gmgq9z5t1hu5r', -90000);
INSERT INTO public.ledger_entry VALUES ('ltx_CrsXToevqDVKF2juT8QTZSMy', 1, 'revenue', NULL, 90000);
INSERT INTO public.ledger_entry VALUES ('ltx_dIm4-ZLT3ChlNF0Vr9RUiUen', 0, 'account', 'acc_0mwsaq4scrro0lx7757u', -185000);
INSERT INTO public.ledger_entry VALUES ('ltx_dIm4-ZLT3ChlNF0Vr9RUiUen', 1, 'revenue', NULL, 185000);
INSERT INTO public.ledger_tx VALUES ('ltx_AornNOu-AONjLEPGPHScolcH', 'purchase:pur_0mwsaq47ywpgv05ym2vh', 'payment', 1795379712790);
INSERT INTO public.ledger_tx VALUES ('ltx_idC_4yeV_6rHw4mrMks7N0NW', 'purchase:pur_0mwsaq4ljxcpi25r6swz', 'payment', 1795379713198);
INSERT INTO public.ledger_tx VALUES ('ltx_LJKhqPsGtMqcuKdD_o2iiCGE', 'purchase:pur_0mwsaq4u4ej8fp2e1l4b', 'payment', 1795379713309);
INSERT INTO public.ledger_tx VALUES ('ltx_SrVh8b7sv4dRwQe8UxidAMtR', 'purchase:pur_0mwsaq4y8k4d3vo8wtvd', 'access', 1795379713535);
INSERT INTO public.ledger_tx VALUES ('ltx_rmJkJg5AEoBlxvxqSt3WjDTe', 'operator:gift', 'payment', 1795379713557);
INSERT INTO public.ledger_tx VALUES ('ltx_ZaJFifqE5l4hMXV5abyVQKKv', 'grant:acc_0mwsaq540aic9e9vl82l', 'grant', 1795379713632);
INSERT INTO public.ledger_tx VALUES ('ltx_6NsYLMG7k3ZW2kMrvg1lpT5v', 'claim:acc_0mwsaq540aic9e9vl82l', 'move', 1795379713646);
INSERT INTO public.ledger_tx VALUES ('ltx__AD4iCq4bu0QZtW6vTMCEZgQ', 'lease:acc_0mwsaq4scrro0lx7757u:first:1795849928884', 'usage', 1795849932086);
INSERT INTO public.ledger_tx VALUES ('ltx_CrsXToevqDVKF2juT8QTZSMy', 'lease:acc_0mwsaq4gmgq9z5t1hu5r:old:1', 'usage', 1795849967130);
INSERT INTO public.ledger_tx VALUES ('ltx_dIm4-ZLT3ChlNF0Vr9RUiUen', 'lease:acc_0mwsaq4scrro0lx7757u:old:1', 'usage', 1795849967130);
INSERT INTO public.node VALUES ('old', 1, '', 'dead', 9, 1795379719569, 0, NULL);
INSERT INTO public.node VALUES ('first', 1795849928885, '', 'alive', 85, 1795850016103, 0, 'mx02ok0q-9c5ji4s');
INSERT INTO public.node VALUES ('second', 1795849932227, '', 'alive', 84, 1795850016195, 0, 'mx02ok30-wwxz4nqm');
INSERT INTO public.node_report VALUES ('first', 1795850012156, '{"version":"0.0.0-test","worker":null,"started_at":"2026-11-28T07:12:12.153Z","draining":false,"calls_per_s":0.6,"cpu_cores":0.019,"event_loop_busy":0.017,"memory_bytes":208244736,"providers":[{"profile":"premium","chain":"ethereum","provider":"paid","circuit":"closed","success_rate":1,"latency_ms":0.6,"lag_blocks":0},{"profile":"premium","chain":"ethereum","provider":"paid-2","circuit":"cordoned","success_rate":null,"latency_ms":null,"lag_blocks":null},{"profile":"public","chain":"ethereum","provider":"open","circuit":"closed","success_rate":null,"latency_ms":null,"lag_blocks":0},{"profile":"public","chain":"ethereum","provider":"open-2","circuit":"closed","success_rate":null,"latency_ms":null,"lag_blocks":0}]}');
INSERT INTO public.node_report VALUES ('second', 1795850012518, '{"version":"0.0.0-test","worker":null,"started_at":"2026-11-28T07:12:12.516Z","draining":false,"calls_per_s":0,"cpu_cores":0.019,"event_loop_busy":0.017,"memory_bytes":208244736,"providers":[{"profile":"premium","chain":"ethereum","provider":"paid","circuit":"closed","success_rate":1,"latency_ms":0.4,"lag_blocks":0},{"profile":"premium","chain":"ethereum","provider":"paid-2","circuit":"cordoned","success_rate":null,"latency_ms":null,"lag_blocks":null},{"profile":"public","chain":"ethereum","provider":"open","circuit":"closed","success_rate":null,"latency_ms":null,"lag_blocks":2},{"profile":"public","chain":"ethereum","provider":"open-2","circuit":"closed","success_rate":null,"latency_ms":null,"lag_blocks":0}]}');
INSERT INTO public.old_form VALUES ('round-robin', 0, NULL, 64207);
INSERT INTO public.old_form VALUES ('chain-provider', 0, NULL, 64207);
INSERT INTO public.old_form VALUES ('profile-prefix', 0, NULL, 64207);
INSERT INTO public.old_form VALUES ('key-query', 0, NULL, 64207);
INSERT INTO public.old_form VALUES ('version-header', 0, NULL, 64207);
INSERT INTO public.operator_action VALUES ('act_0mx02ol3vev5tvwfb5f2', 'operator token', '127.0.0.1', 'cordonProvider', 'premium/ethereum/paid-2', 'reason: answers <old> blocks', 'done', 'first', 1795849933531);
INSERT INTO public.operator_action VALUES ('act_0mx02ol40bb0wym2iiqa', 'operator token', '127.0.0.1', 'reloadConfiguration', NULL, 'this process was not started with a configuration file', 'refused', 'first', 1795849933536);
INSERT INTO public.operator_cordon VALUES ('premium', 'ethereum', 'paid-2', 'answers <old> blocks', 'operator token', 1795849933525);
INSERT INTO public.profile VALUES ('prf_0mwsaq53gf4255pg7t3q', 'acc_0mwsaq4scrro0lx7757u', 'my-nodes', 1, 'v1.3e8682c7a264.2rVd8PcPXp8uwhqA3Q8h93W2sPe_DrS38mqTAp-TrueRTW2v37TulMNk5rI4PK1OeIdwIBaGG9OU8TnAjvl-zjXbZKwl7Z9UwZ0eGwU2U0Roo0cvOpeNa1jXSAibTAg6IyqTRTc2TFYpYOGXNxJmJVzReFNbp6r6odzTqvl-lzO2UD7ECrsY-wJGhagS0qAv2nINBaR1PIUxHeVpnKMdvfzpD9CPyjv-byV8WXNYurT4YfKsuVpngLnPNVl0late7QiROPu5onE0_ySyVdENKqB8ek2MWK8x969jkxjbfhbXxuB0qJYhENKb0gAIZifkjWGU0kxIzEshUiiRuRL5Ca2z6Yo', 1795379713612, 1795379713612);
INSERT INTO public.provider_quota VALUES ('public ethereum open', 1795824000000, 71, 1793491200000, 71);
INSERT INTO public.provider_quota VALUES ('premium ethereum paid', 1795824000000, 756, 1793491200000, 756);
INSERT INTO public.provider_share VALUES ('rps premium ethereum paid', 'second', 24, 0, 4.75136, 1795850016868);
INSERT INTO public.provider_share VALUES ('rps public ethereum open', 'second', 24, 0, 1.024, 1795850016868);
INSERT INTO public.provider_share VALUES ('rps premium ethereum paid', 'first', 26, 0, 3.9321600000000005, 1795850016701);
INSERT INTO public.provider_share VALUES ('rps public ethereum open', 'first', 26, 0, 0.5242880000000001, 1795850016701);
INSERT INTO public.purchase VALUES ('pur_0mwsaq4u4ej8fp2e1l4b', 'tempo:1337:0xb76175c0aeed956b99747c4b28418bd9ebbf5a2931175e16e83a287fb2469b51:gPei3il9VLgjO0vrMJnHUougUszwGqP6FPP3FLRj7Sw', 'gPei3il9VLgjO0vrMJnHUougUszwGqP6FPP3FLRj7Sw', NULL, 'TKOfkOgrnr6gu_kfVH6xmrtFuOLY4Awd_4ih8elA0tI', '{"kind":"credit_account","accountId":"acc_0mwsaq4scrro0lx7757u"}', 1500000, 1500000000, 'tempo', 'mpp', 1337, '0x797e6ff8320897b0', '0x20c0000000000000000000000000000000000000', '0x14dc79964da2c08b23698b3d3cc7ca32193d9955', '0x23618e81e3f5cdf7f54c3d65f7fbc0abf5b21e8f', 'v1.3e8682c7a264.GsqNZ1RtcXc5pFyH0tTp-W45yhs7sWVpgNCZFbI2KCG65bNUKrLijy5ScrvW9mAAhKSnwPfzGYl1Jsv_waThIyL9QtavYgbuGSGanhkbqQHsDsNaJprWwMCvbNB_GJ6keTCwhjqcRvCyldcNN0m5ylHGJsxEZGjxxySmNkH_4xCHrQtGrYQIlk7uWPabnqOC1y5Zk9Vjql1LVutVIxE0-3LPLBAyFupvwu5ZgNEGVIPKk5rHyJTCeFcVpiYy_-WqKRmGbaIm_K5icxSFM73BrFeQP8zhdzzNL_XLUhcwCkpzmsn2JLJydd0TAwy_orthl2FcVqbpr9EI3E7euS5uWZNxpBMN3ivb-I-rsxeWBNxtZoc229vWBDI_l3LWDcktjGmHC9jERvOn5NkIntJUOLqJ5beH1ORiqOaZPTvnII9rQGQVaxMBYKyvY7WGvGtH6xcaXQNvau3gquFytnRsEeMpKGX7', 1, NULL, 'settled', NULL, '0xb76175c0aeed956b99747c4b28418bd9ebbf5a2931175e16e83a287fb2469b51', '1337:0x797e6ff8320897b0:0xb76175c0aeed956b99747c4b28418bd9ebbf5a2931175e16e83a287fb2469b51:1', 'v1.3e8682c7a264.LlnKUUnjoNcoK826VuHTOCg2U_hjaJ3X_hVAZX37VrXRzp_gtkAuxgE8cJtxON6VuIl0otStqMp_4IbuGQ_c6nQnt7Fgd7daA9QbGm_e7ZGUP-P4yn9rNVGvV8jLKtqoSdXmV2UV2UnllwDJsQfO1yWBvdHAnaZZfpofpmG-P1qoRBE1I21o9qIMnA', NULL, 1795379713276, 1795379713309, 1795379713276, 0, NULL, NULL);
INSERT INTO public.purchase VALUES ('pur_0mwsaq4ljxcpi25r6swz', 'evm:31337:0x700b6a60ce7eaaea56f065753d8dcb9653dbad35:0x23618e81e3f5cdf7f54c3d65f7fbc0abf5b21e8f:0x820d17f65cdb69d57c6e5ffcdae17459fb45aa89cf1ca91d3a974c1703a1f879', 'ZZa1cP85r1thylVrPAl0pF4I', 'ZZa1cP85r1thylVrPAl0pF4I', 'ZonselYPDT3q9osaYUm43TJ7L9S6OyjiYzTPwcu2jpU', '{"kind":"fund_key","accountId":"acc_0mwsaq4gmgq9z5t1hu5r","keyId":"key_0mwsaq4gmnhloixxf87n"}', 125000, 125000000, 'evm', 'x402', 31337, '0x2d6a6cf2142a22ae', '0x700b6A60ce7EaaEA56F065753d8dcB9653dbAD35', '0x14dC79964da2C08b23698B3D3cc7Ca32193d9955', '0x23618e81E3f5cdF7f54C3d65f7FBc0aBf5B21E8f', 'v1.3e8682c7a264.QopTt9oRHkQ1dG9KEXmY-HNIi_QETlm3zlCFK77-3fFRIB6NJQTC9YsA-FI4AE69fFp15bgxDPxasZsFZEuuKkjUaIxq2HDNMZOIrq8yyagUSPyWDn2W3xrtETn3OUdOhtjAcgo3Kc8OwwS5j7yMpBrJgn2AYdUIhRXFP-Cyk32MS44B2uhIrpdczgolXS8AE1VKGS-ELzM1m80XuSkvIK4UoecCuxNjQ7LLk9lwRTGIicaKpAleUelMnd6YbaE6eStjUE4IKdNu4Yyq2LHbsnJyFPTlmDHORuKxaBqjoC3JGoJoJPfV9nJm4gbscou3M7xQhLs7h9-3AQpWwfvWnLME3fox8fDMaodXF5bdnVAsEo4N0TSh5ADNiK03GcGlDywI51WAn1BprqjXUiVXRO2UjhXx_RQv4fnwNObQLwQUfIMb6SXgDNeMVYwwOwRQ5ZsH_DnqbGF2EyNb3GRoqpS6Ha7sElSV2VkWUIYx6zPmm41fTecSeFdm6Ngf4x4sfkscBnOBpWySWz-uRPFyKmwjzC5VxiA2OFGGXz-MWlYibAwWuDneRasHFYxjbajqcONwB399ENpAy09S_dEmikvnP_hk4GHICE4Ws08t4GYg_clVi1Mbb08Z2H4ZONKG5iUtK-BiG6_RartEv7R6RlMbLoCx5eTipR6FOBS0rLs', 0, 1795380012000, 'settled', NULL, '0x1dfe126f65a5416f2c54f2fbac3d0fc87fe6a5a7e07c7b01edac06ecf0038519', '31337:0x2d6a6cf2142a22ae:0x1dfe126f65a5416f2c54f2fbac3d0fc87fe6a5a7e07c7b01edac06ecf0038519:1', 'v1.3e8682c7a264.6s_4Ufmcpl6rFEqtSZjSf7ZRKoAuwJTCctL0Vz7e4yygSLLIvA3Ymqedwou9WWH1cyJ8Bv897mj3EhMQ2bHgGMPrF4yFtPI61M43JsiPvFw4_1oMpDzR7RyswpzsTlnzzuunFEtbb9LPwle5VYGgUEdMMHHQBmNcuYgr9wvIjcRwKPE', NULL, 1795379712967, 1795379713198, 1795379712967, 0, NULL, NULL);
INSERT INTO public.purchase VALUES ('pur_0mwsaq47ywpgv05ym2vh', 'tempo:1337:0xfba54559c0fd9143a95cfb2f01ca44cb9584ca71dd3af99207f1faa73a92314d:jcLd7LxbF6lyD8xZu9lECGfOEHrTnRpOCWWBO_FBRJ8', 'jcLd7LxbF6lyD8xZu9lECGfOEHrTnRpOCWWBO_FBRJ8', 'jcLd7LxbF6lyD8xZu9lECGfOEHrTnRpOCWWBO_FBRJ8', 'GFZiQ2NUODBLzahvqG7m5CHvE8Uuc5kQYjoU2ZOXp-0', '{"kind":"create_key","name":"agent"}', 250000, 250000000, 'tempo', 'mpp', 1337, '0x797e6ff8320897b0', '0x20c0000000000000000000000000000000000000', '0x14dc79964da2c08b23698b3d3cc7ca32193d9955', '0x23618e81e3f5cdf7f54c3d65f7fbc0abf5b21e8f', 'v1.3e8682c7a264.5Al7_x9vnfobW_NGPemJfdzUPLn6c5bAFyHNKAvvd7Pc1xvZfYbDGH3t8ums8Yi2Sk97wN2J6cCk0NUuEiHHMnHBJ5rZiHe-0aJad76-9UB41Z37UDix4ks8OFd1L0rV9TAD3X5GyuU0-ra6YO0HHInl03-LlQWYMdXwR6bhCFnbPKtKp3Y5iDaEA5NA-7N6lUx_QSdeQS8b-ZUDoU8IEzNf2izdwdkhSghdueDa1aGWvEMKHPC4qQYI-b7mzCLeuWVGjqlG9srbLnSmVdrwrq18JY2deaL3YyzUNnAuEFu8_MHUpqxtvck5gGn8iGg_f-_ppmBIpbeiok2xek1uptTXEtBDOgBVK4XnVMSfNU4edga_jGE0Ydx-dLJfUPfI5icbZfsBKL3BUU2ko-3bR39NNb_wkQXkDcf12uFtZwuGQf212pjqslnS8tABQ6MRcs8exJ0rTEaYnkdmci3WR5mKwUU3HdledruzTxNebBHiy4MLwNUG4flz-fNdx-uJ2BHBqNYvkwkJsyWDkIUH2hZk7jcTH7jXqU_RkrpgsLHRYggkhZhatbe7I4WjNd-8NtQpeW5eAnIjJrzJb3KjzxxcpP-bVc9_2-crcjeylgK4wWK7_t1G9TeX5dHFaACRvlRSUi5kgLCPeU_4OgxT0herGjcMnCq0ZbgmN0gOEe5aCSX2tZm22F9UNNhTXOXwMhEHqq3jARx7pV0du5mNCMCtJBYGCvNO0cSc4ycmcydKMG9MbI1eO-m815jXHmjsvchrdzerMTIww_pknU0d2vvsC2iThhHgVySKEuC4mghfapnvLlscp5inZGguKWutEE1hK40uEqCacq81SJdTzDxKf7xtMfaAQ5QVsBZxVPVUuNJCXID80-dNm7yKB33LdDBuiqtIJ1tiW6KBNB7WZEz8d0s8TXqMgSxUASKEKhxWX3vlcBdIOEb7dj5TPrUj-fpUwSyxboz5BEZhOTaa0BZ25YELJSyV8Ae40hCtGTPFcc14-peDpOOa04IyXXPlzWTtliw1S8nWbLskdIE5C9X_gphH2fvZTKTEGNmnhCSJheOHW_107KVgNSLm2PH8Ji0RWX_e5W_rzik53M_T85O02nr0QkI6JskPbr854IPy-0hcqm5a73c_hR07imbQSAjsd0wJlnACtfwwzg14jvsmiblhwiM2VNj0K3EyDXnhi2hb9LVmU6qWhfPHy1A1RskCzS81Izo0Ywrcq9ZWEeBQaivdwtYwBPln8r8sm-Idsg28gm6-kyy0MP--aIgp3P6ocRfI46Qs4w1qQ0a41qEYkI2_lOuUU2exSBMDJZrOPOx44h9hHa-WWkUZQ6yW5D2asNS6lQUI-mJcML6fy04MYUUyKcJ2OaoBLim4WOS8xXT18RdlqRLDTBPUXbpCxG3fGGDJ5tZ0UyoUIO3r51PuXKIX3WzJvVu9L33arFZ7WQ', 0, 1795379737000, 'settled', NULL, '0xfba54559c0fd9143a95cfb2f01ca44cb9584ca71dd3af99207f1faa73a92314d', '1337:0x797e6ff8320897b0:0xfba54559c0fd9143a95cfb2f01ca44cb9584ca71dd3af99207f1faa73a92314d:1', 'v1.3e8682c7a264.VC3YpX0VdXBvlt48UyUNJYUphuBJAKbraby_fs4dtDeNexmzEalJ1urMH0FQZMwRPlZDvi0ovpgbnLDWOkyriWlGXcKhIdw99ISZKCFIL-PlUvM7JMVGmVLWvVnxaKJrd7OGdZu0cz8hFnLued8RRKxgTgs_LS0A-ZHv8WpOMmfJC5yXoCpAqlurg0zJFecCW7cv1OFvLQesdmctXosiZ2e3HzGsqf_8SEpOhGxfkRQluK36KRut8jQTFD-4oCD0BS-g3D2rZBzv0mhyJ2mq878PjVVbT27UFNhTM9-Cq13Fwyz7AvboAEM', 1795984512790, 1795379712478, 1795379712790, 1795379712478, 0, NULL, NULL);
INSERT INTO public.purchase VALUES ('pur_0mwsaq4y8k4d3vo8wtvd', 'evm:31337:0x700b6a60ce7eaaea56f065753d8dcb9653dbad35:0x23618e81e3f5cdf7f54c3d65f7fbc0abf5b21e8f:0x5503289c7e2ee43a954cd225174cd8852c0985d2863045fe5de334c93c013dd4', 'tfliv7NI-uRuht5RXMlvFSLFhJwRmGNb3W1mxcO2h7s', 'tfliv7NI-uRuht5RXMlvFSLFhJwRmGNb3W1mxcO2h7s', 'ePoycIwVYK2riYri0gmOem0VjDgCU2Sjf9MvwHKpTUI', '{"kind":"custom_access","accountId":"acc_0mwsaq4scrro0lx7757u","keyId":"key_0mwsaq4scjwqe1je0t0a","days":2}', 2600000, 2600000000, 'evm', 'mpp', 31337, '0x2d6a6cf2142a22ae', '0x700b6A60ce7EaaEA56F065753d8dcB9653dbAD35', '0x14dC79964da2C08b23698B3D3cc7Ca32193d9955', '0x23618e81E3f5cdF7f54C3d65f7FBc0aBf5B21E8f', 'v1.3e8682c7a264.I_-lzghX8nM1wYP4H5WGknwX5cOt9-kkAVDC-ly-T3-Sly0TIO2L-c_HbCvUCmL0iO9sqPuCi87JgfAir4X2JWHdkkfBA8OLEzpefLh1_HHk-Iv18rikZnf226QvrGYP80fBXIAvFSgzre5hZ8vrPuByQp22fMEqyOGuZ3VIq0QlyfzNaTcGA2LCtZYCnJvNl38uZ8IQJd7hwNI1BSrKqq8hHyoRSWmgKj_VtcCQ590ns6_4tGTdsctxfdTMwuGYOe3J_iVuqAoW3s_PmYU34gQ0o3dthm8TwzGkUa-SC_zH1LRWSCy8bAyinU4qZFik61isTVe0Y64f9iu3i8h4MtQyUoCTWSh1Lb41H8K5B0XAewRUzoSW75zu1r-5B07YmSeCcayncDxJ7lAV0lGhnc3RVoOjNhr4RXR100PY8nexuJTS_iOngUDBlVzMUUfWPbwoLrzPYj-CLOoRSfumnnrSyw9ahwI-4emzGlYyovofeBFh1rmDBlc_5NDBpOaWDY5IKJ8mjqWzPXZGxmkydv8MQu9zl_YAY4iLYOdsxVKXblKB4Si--G1f5hS-u-CqWWQHVEtv1Y1iZubY2pCFaDJBDTnJcydFUknu6GdT1l62pZ1vkDQstfY6kzjjotxhNVaJF8T32lQEsz6mQAjZslFZ6WTcWs9WXdJQruDGal6w', 0, 1795380013000, 'settled', NULL, '0x7e9ca1f085ebafd5fa2209a028797dd60a3f17308d11250d58f5347edac3d24d', '31337:0x2d6a6cf2142a22ae:0x7e9ca1f085ebafd5fa2209a028797dd60a3f17308d11250d58f5347edac3d24d:1', 'v1.3e8682c7a264.ws4FwjTFmQdCz4WrO9hwFnsAJoxfbYdGQIyQMhsmWypEuEOiD2dUJrmAIJvUskIUAKs5S9s8adg7ejBrUgPI5ZSVAIIF_aZRKp1McPcAvb625vcBcQT4E3wH4D2GlMCBJHl7nMBcx4z-B5q9Snx_DmoSw6GBJnsMkbYXpSMTOvEQf9Z75zLMgjd89WF-zcgVO90RcBArklJ_DlFuBtDKwAuIdMRhL60Qg48BcVoV9FI5bQG5Mec', NULL, 1795379713424, 1795379713535, 1795379713424, 0, NULL, NULL);
INSERT INTO public.purchase_submission VALUES ('pur_0mwsaq47ywpgv05ym2vh', 0, '0xfba54559c0fd9143a95cfb2f01ca44cb9584ca71dd3af99207f1faa73a92314d', 'v1.3e8682c7a264.9_kZk17nGahhhNJz84t5JPf2BoXWYRgnQyhkwBjNBM9qzDJZnDNbfpEud4M91r6TcB49o-bbZg7rqu2y1mCW98Dob_vwbMyu1Dl8BdHKH2u_cpU2aH0Kzw5I9Atj6vgJkhJFrQZpZTlvw49wkxeeU2aOB74oTuiLV1LK60l1yjWye_w7dZsdtUE7dTk5OPiD8V3regYxpDQGhhetVL92Fd5lNUCVWz1zCw5mTqXRsn73-hRxNLzgxzfmC5cMGXG5f-lEDg0HMeVIfdwQ-jhjQryuuhr0vvKnEY-VbYs5atfsqnYq4p-IdbFozVkf6klUor4_pjUkabLRGupVaa1QKW4D5CN8oYzDhs_TkD9dTtXkmZIzf-jJkslnfyNdhLd2MgsyvJoDLoNVYhqjzaKmXEbu9TcqB7nFZoszVoYj17bJRj0Ow7eCMphd1T1_-pC7M2Y811gdO_2xQDoyKNhR4wIg88BI_XuPdcFJimIWWCo240ZxQdzDEa37NDoQEORXAZXYmz965OGIDIuzHBP98huK8tI13iWGTPm6tmT4IMX1lV8DLqdD2jcWEpJoS43PUHvPERctFap-wp1D7WjtGxsEE_vFzbEzckXCJ1BAs1Xu-ipZA-ySWd6ZZRuaz3LE5lUwvfTYLg6DFilT649Q0aCqWVgYj3EkMm4EHO1G93nIfWKGH7_O4S6H1ZZdl7CX_UFecDWAnQzNCnpfztcnE552qtcrRS5RYp4rG9O6wuo', NULL, NULL, 1795379712549, NULL);
INSERT INTO public.purchase_submission VALUES ('pur_0mwsaq4ljxcpi25r6swz', 0, '0x1dfe126f65a5416f2c54f2fbac3d0fc87fe6a5a7e07c7b01edac06ecf0038519', 'v1.3e8682c7a264.57q-y7T8-gHGisX6_DTNi7a4RGtaxYXiO6bAFwKM_mLhBKILrTH9Q17qSBAjkWVd7aEk4LUP_GrlE_0G2gj4rxW65Flc9Jg5830Bk2ew44fUo_6CAyAKlIb3D4I7BA5n2rSiPhb3SyPO4byphNoEBSysr8Tk0ek0HK1gUOBPLgn2rTsxl_CBSAX8tDd47JNu7tz3rVie1sFaq7wkxh6vSeZ8RwUkWWeVKjeQJ7JI7ROTjCTjYzXf5kVmAijtdgwdCDhflGWaEikC_ApK32fGYnkDGbNshYEJhkGDyKjqLLPGsgCWSlhtjLv8NnuaE0I8MhSw-Eohkm56YoeRTdS0ThbAY9JLnD-n20F0YngKN6jcOqyiYdic5goIgGv6rgFrywRXL70FI4UI-PIBu3-ljvcftwq1HZLF7Blt5jPQETcUNu1Pw0s2cJCrNTi_oDrJC4_gv5ILcIXAVNwcr0d7WwX6_KJgiz0er_oqWoPXsnA5IWgZAIxQQDeiHUxDzorF4gT9eXrKS715wAtBBUCTShpAOy4Hc4GXwMrmrD3WZOfAsQOh_ajFF7zwwo65b-VpToPEac67gGw_XthdeP22mpSnb9x8zqH2b2xFrA6hEJkZLozOEbKf7gHo1cULW6hWtw1E2DNwdFGSNWu_jaruRFliL8pAUx6ymIryWIFceSAeLhsJ65yeJlrHKwuTeCtkzexG6NERQ8ZnIFuZ1f1b8kOMVeAJ9Zm7VDC5McpzD6HHRGtbX0dTmEld0FGevRxdkekgVGj4DWHvRqJsLUSYkv97WpJ1HeV51mFUUlu1V-kZ0ItzQMe5fmJ8m2d48Bvd5T0_nJ9ZOfdjYiosR5Ww4PwLDfpcCUXN8Ex_W3v0lSkj3N4FLNurbOj0LPO2ILGAgxL7p6pu5dSMQnt-ZSgoGnWKfKnKQfJcHERMU7s5YhiZkbqYwR2tSQqxPQnUy_pOGpGRd2CpIZWCpWqiDPoZLOuWWctwvNlyyfsMKTNhPHRvMtIA73q9KJuum9t7LdwOPOY2yFS7qJxB04q7nB_bhHDvIpoxGsEVTZ1e51hFUTvwAn0FS4WZu2uiIUVA31LSdA46jiPLbJkvcHWUhA0D_Qyf6H8t_nXDaVbeHw', '31337:0x9965507d1a55bcc2695c58ba16fb37d819b0a4dc:0x2d6a6cf2142a22ae', 0, 1795379713065, NULL);
INSERT INTO public.purchase_submission VALUES ('pur_0mwsaq4y8k4d3vo8wtvd', 0, '0x7e9ca1f085ebafd5fa2209a028797dd60a3f17308d11250d58f5347edac3d24d', 'v1.3e8682c7a264.bwOYIciCRIFiBZDRinE50Ju-gZnv_rDvshCErQ5HxUsj76ShJIFitmX8HNWAnFVv_4-wbWeu_Nsy02uytoXmZFhyqXSua2TgCT6ZNb9_6-5mvrpRYucsp8btMAqmWd_0HKM3a2Ytry9ym3W35MtbbdmFUxx6CnT2Nz4LMLbQxzVc9zR8X9SYawj7QsM8uhxqY-2ifCEObMa6ubckInAamDkcn05NcWI6-0QoaO3dfyfIM29URC5JZ5nusgKN-WJhzaTelEhbLFO3svo97RHlGIRruNK0fGTdAVE2F3BR30v_Jl4DriKcuGYayhG1-ckh8rs2v6uPCA8UZC4pLt0NwZx36W-f1DBoSckv74gOeJrnmAV413kQRGoPupmCVZIFertSxTctAkyjw2_sJGnGNNLGaDteIWhHln45N2HQ_y_mMG0XxJOvIZ20GABWZWSXdGuKcY0odHWtr-gAZTObpE-FsvbX9AoF-EOXhz9C9azeJTej4twKV_lzun-U3K2juCildgNQFw4G6oRZ7rFY-EyH6HhsufmFf4i_2u2VQ-sfEZ0zYey7cnGUjD2XqDkX6UTpkhTEtqfFobGwwFnMOobTuVryl4OAYipIzfUFk1h3Kamjt-9IbFezsys8Ke7naicJSiZN0EWYLUvrohFfMCUN04obDZGZ5pDG--efnUT2f825Y1LRiqFa5w2iszlIo1-hW5JpCf95PHvTG0hoKanP2ws7fcyQ-21_2YwJ4RKnyaGUmKnZPqq9IBtyp2YNayYQG3vDXtJWXGSfazl0l_Lma_p_jXZJ0BCb45yhoWhi4Blr_PmGa4jEte4y1_6jul_VHml0_7JP3AW75pmMpCm5VsvYC678KPsFRadlcPeqO91kszJFqpbt94SmMY7vQX5u88lpkTHm1r_ANE9jnlFmVNo17YhgAKBRPCKH6EkZYcL7AfEh8IZniTGno0gHfEptVhaBRWpKBA8OsqrNNkptirQHhTsJy0U19zCMXS22Z6DDKuAppX-21buHPGg0I1fW3CUVA9_WM97KXCYdF59gz0yYig3sqbWfe-gu3FZEfcYOxTe4mFebRoAfcS-IjHrttoIOwrURrSTOBM62hYRQ22X-i9_09VTrRA', '31337:0x9965507d1a55bcc2695c58ba16fb37d819b0a4dc:0x2d6a6cf2142a22ae', 1, 1795379713438, NULL);
INSERT INTO public.rate_demand VALUES ('mq5Ns1hImut_LHKqYPKOY_', 'first mx02ohiq-xw8xt6rh', 0, 1795849931916);
INSERT INTO public.rate_demand VALUES ('jczg-LTt6NxlJ2kGANxOiR', 'first mx02ok12-sozmyr1w', 0, 1795849935556);
INSERT INTO public.rate_demand VALUES ('jczg-LTt6NxlJ2kGANxOiR', 'second mx02ok3l-6v1obcl3', 0, 1795849935725);
INSERT INTO public.rate_demand VALUES ('mq5Ns1hImut_LHKqYPKOY_', 'second mx02ok3l-6v1obcl3', 0, 1795849935725);
INSERT INTO public.rate_demand VALUES ('mq5Ns1hImut_LHKqYPKOY_', 'first mx02ok12-sozmyr1w', 0, 1795850010921);
INSERT INTO public.rate_limit VALUES ('jczg-LTt6NxlJ2kGANxOiR', 1795849935726, 10, 200, 1, 0, 1, 0);
INSERT INTO public.rate_limit VALUES ('mq5Ns1hImut_LHKqYPKOY_', 1795850010922, 10, 200, 1, 0, 1, 0);
INSERT INTO public.session_call VALUES ('0x16eb59ad3c1bc7aa6028606a418806e6ab3283dfd1d2e17fa5847b614ba6e7a1', 1, 15, 'uonpdeBoPvoO5sdxgEK6ZMUBMjRvquUXQa8Yx36QwwA', 'AgXwAiASGI2HCEjfdns0UtqXS6IKE6GRI6qNjaDa4WI', 15, 15, 15, 3, 200, '{"jsonrpc":"2.0","id":1,"result":"0x1"}', 0, 1795379714354);
INSERT INTO public.session_call VALUES ('0x16eb59ad3c1bc7aa6028606a418806e6ab3283dfd1d2e17fa5847b614ba6e7a1', 2, 30, 'ZEf1Fm8npH6U_4kBRQyZJ37Z76CRsL6M2xWkzdvT24A', 'KQfH_HkgXe81aPpWlt-206u3PJTi-qYWNPcO9hE0JAY', 15, 30, 30, 3, 200, '{"jsonrpc":"2.0","id":2,"result":"0x1"}', 0, 1795379714408);
INSERT INTO public.session_call VALUES ('0x16eb59ad3c1bc7aa6028606a418806e6ab3283dfd1d2e17fa5847b614ba6e7a1', 3, 45, 'n_xcqxGImGulCbsUBb2uCOX2LzpTkEQTDgCmQdvHpoc', 'Kyw3E79nftPUyLQIG0BEFT5Jvel3dj_tYWP2u0YJxTQ', 15, 45, 45, 3, 200, '{"jsonrpc":"2.0","id":3,"result":"0x1"}', 0, 1795379714504);
INSERT INTO public.session_call VALUES ('0x16eb59ad3c1bc7aa6028606a418806e6ab3283dfd1d2e17fa5847b614ba6e7a1', 4, 60, 'FQ3DFagGHbWaT39v5C4qcqyfbnBhHA8SNt1m8Ug4YVI', 'bZeWjWKDNT_fgVZIw73ck0SJkna6wuC8KoY-YIgWPW4', 15, 60, 60, 3, 200, '{"jsonrpc":"2.0","id":4,"result":"0x1"}', 0, 1795379714523);
INSERT INTO public.session_call VALUES ('0x16eb59ad3c1bc7aa6028606a418806e6ab3283dfd1d2e17fa5847b614ba6e7a1', 5, 75, 'V6CYcOJtqk16E6tlqZ8hvEhNS4MdyTqGf6smVrc4fAY', '8EBrT_62gjEkbllv86ELbl_tx0YZ-FVr3XOp4heK_oo', 15, 75, 75, 3, 200, '{"jsonrpc":"2.0","id":5,"result":"0x1"}', 0, 1795379714541);
INSERT INTO public.session_channel VALUES ('0x16eb59ad3c1bc7aa6028606a418806e6ab3283dfd1d2e17fa5847b614ba6e7a1', 1337, '0x797e6ff8320897b0', '0x23618e81e3f5cdf7f54c3d65f7fbc0abf5b21e8f', '{"payer":"0x23618e81e3f5cdf7f54c3d65f7fbc0abf5b21e8f","payee":"0x976ea74026e726554db657fa54763abd0c3a0aa9","operator":"0x0000000000000000000000000000000000000000","token":"0x20c0000000000000000000000000000000000000","salt":"0x593209f9fdc9d91deedb28ecfa5d2b093cb0832969b5dc85d8d7d40c1243522a","authorizedSigner":"0x23618e81e3f5cdf7f54c3d65f7fbc0abf5b21e8f","expiringNonceHash":"0x1a2854369fd061d35c8ee2744ce59bc541e544beef703d4a0a9ad4297dd59034"}', 'open', NULL, 1000000, 75, 0, 'v1.3e8682c7a264.PwZU8NiDUTytU0ilOcO7URjiyZGAAoeq3pXbpTnRbVwpNQnJgVztq7dpW9eWOdX_-vwKbSNnVWHghtJi4d-gZ0J42jsWV2_VDmEGAp63PxXJMKR5KkoaUeDC8PpC8gboaS3kVOgRLOFlZ9gNDskueJQ2lSgBilUYJOT4h8ooK-iUz2czL1qWowFWPR3YXRsPHcx1dC1J29KEofK6d4-8Xot4jNvgSbWijbNU', 5, 1795379714354, NULL, 19, 1795379744305, 0, 1795379714195, NULL);
INSERT INTO public.session_transaction VALUES ('0x1547ff403bab49359cb4c1377f0a2f6dceb8b73f505cb573b8f3685b1b74bad1', '0x16eb59ad3c1bc7aa6028606a418806e6ab3283dfd1d2e17fa5847b614ba6e7a1', 'open', 'v1.3e8682c7a264.7blevHtmxYbONuTV5rUwNwE-8qtcS5YSah07y8jAtLbIWdSC5GWV-80PkQvurmp4-8rbWoz0MBfMGZIT7-6OX5hfqpHXkKQdyZVe96KvFKqJYGFaJ7K127h7dfdY8YxnzX9-RLRKfOw2WOC9n2jirWKfYHT2Fd-LgzpOAHYwWJaaYiJ2qNSjZGIlTb44Aqe0q499eYnbbcrtXobIUPeAa0WT6lpuc97sSySF1RLloZtMxY9D40ZAvbtA-Mtgel9MVA6CswMKboI-Zcp_vak_yAb7VLqrTsDkovpGsZEv393qyrbLG-tmzCc52LLhaPP94Dt9ruQHJvg9c0gt9psXHi_KiGN3Q7O7zSjil7CqMuOhQhlQIPlnd_lUfhj55-EU7bZFNAzAY0ITH8A1TFlGU76CjrsAwxa7rP5DuqEJp1rMd5xMBYfc0FO33UPDH1HpZRswZKE7LNV6Jcz-tr7S5NXNeCkxvRzMTk83kagIWTVP4B5tZdYXFFDYpCsupbhX_kFVEDwgb72iz2ZMTGQ66lC7-KYeBet9Wz7bYDlv1mYU3poRKztMUFp9IWuLtPqtG_B40_Gwu-6PBFZgzLWzsuENbm3scnrvEuc9t4WEkibh-joy2_QxHa1Maf49oAr-yChTdTKYW7vLd4bBY5u2ZFJ4TRgZ_weJPZJAXSOHOJ3YkfawVPwuFyKTgqJvQl53GIerWswU6cxBf_a6oEEPMJ-D7s9D1RSWjaSUR_bIP2uDNJmrkqgdU5SZnQemDxLcUAdk86_0inTmFPP3W6YVxqXoi9Bcn9hz7NOv7ahEWdrBTw5DFhiTtElIcP0Xx7bKP5E-s_Io8_iWzRPrK-oO7gMGkGPrchoMZv1FC6jX5T6sVXugjBpVxtOQXBZXM8x8PSxjjjSJqMMLxfgO5wvroLup93C_cdmefEjl_jg9Lf_kdnU8V6pG0o4TPY6Ym0-FisX6Iy-rtm2mFlR4v-QuUUM7vSKLumtKkSTj22xs9GfmtoNuQ94E6YZuddfnDlrsOvG5tzOQ1Vh6T6YIc_3pctATHszijg', 1000000, 0, 1795379739000, 'done', NULL, 1795379714195, 1795379714305);
INSERT INTO public.settlement_wallet VALUES ('31337:0x9965507d1a55bcc2695c58ba16fb37d819b0a4dc:0x2d6a6cf2142a22ae', 2);
INSERT INTO public.usage_hour VALUES ('acc_0mwsaq55qkrqerxvtn3d', 'key_0mwsaq55q5abc0jr2ma6', 'eth_gasPrice', 498716, 2, 6, 0, 0, 0);
INSERT INTO public.usage_hour VALUES ('acc_0mwsaq4gmgq9z5t1hu5r', 'key_0mwsaq4gmnhloixxf87n', 'eth_gasPrice', 498716, 6, 18, 90000, 0, 0);
INSERT INTO public.usage_hour VALUES ('acc_0mwsaq4scrro0lx7757u', 'key_0mwsaq4scjwqe1je0t0a', 'eth_blockNumber', 498716, 1, 1, 5000, 0, 0);
INSERT INTO public.usage_hour VALUES ('acc_0mwsaq4scrro0lx7757u', 'key_0mwsaq4scjwqe1je0t0a', 'eth_gasPrice', 498716, 6, 18, 90000, 0, 0);
INSERT INTO public.usage_hour VALUES ('acc_0mwsaq4scrro0lx7757u', 'key_0mwsaq5408d5bclmlwpv', 'eth_gasPrice', 498716, 6, 18, 90000, 0, 0);
INSERT INTO public.usage_hour VALUES ('acc_0mwsaq4scrro0lx7757u', 'key_0mwsaq4scjwqe1je0t0a', 'eth_blockNumber', 498847, 15, 15, 75000, 0, 0);
INSERT INTO public.usage_hour VALUES ('acc_0mwsaq4scrro0lx7757u', 'key_0mwsaq4scjwqe1je0t0a', 'eth_newBlockFilter', 498847, 2, 6, 30000, 0, 0);
INSERT INTO public.usage_hour VALUES ('acc_0mwsaq4scrro0lx7757u', 'key_0mwsaq4scjwqe1je0t0a', 'eth_newFilter', 498847, 2, 10, 50000, 0, 0);
INSERT INTO public.usage_hour VALUES ('acc_0mwsaq4scrro0lx7757u', 'key_0mwsaq4scjwqe1je0t0a', 'eth_gasPrice', 498847, 34, 102, 510000, 0, 0);
SELECT pg_catalog.setval('public.change_log_seq_seq', 2, true);
ALTER TABLE ONLY public.account
    ADD CONSTRAINT account_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.agent
    ADD CONSTRAINT agent_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.agent
    ADD CONSTRAINT agent_token_hash_key UNIQUE (token_hash);
ALTER TABLE ONLY public.allowance_month
    ADD CONSTRAINT allowance_month_pk PRIMARY KEY (account_id, month);
ALTER TABLE ONLY public.api_key
    ADD CONSTRAINT api_key_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.audit_result
    ADD CONSTRAINT audit_result_pkey PRIMARY KEY (part);
ALTER TABLE ONLY public.change_log
    ADD CONSTRAINT change_log_pkey PRIMARY KEY (seq);
ALTER TABLE ONLY public.claim_link
    ADD CONSTRAINT claim_link_pkey PRIMARY KEY (token_hash);
ALTER TABLE ONLY public.connection
    ADD CONSTRAINT connection_approval_hash_key UNIQUE (approval_hash);
ALTER TABLE ONLY public.connection
    ADD CONSTRAINT connection_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.connection
    ADD CONSTRAINT connection_token_hash_key UNIQUE (token_hash);
ALTER TABLE ONLY public.console_session
    ADD CONSTRAINT console_session_pkey PRIMARY KEY (id_hash);
ALTER TABLE ONLY public.credit_lease
    ADD CONSTRAINT credit_lease_pk PRIMARY KEY (account_id, node_id, epoch);
ALTER TABLE ONLY public.custom_access
    ADD CONSTRAINT custom_access_pk PRIMARY KEY (account_id, source);
ALTER TABLE ONLY public.feedback
    ADD CONSTRAINT feedback_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.filter
    ADD CONSTRAINT filter_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.history_hour
    ADD CONSTRAINT history_hour_pk PRIMARY KEY (profile, chain, hour, provider, class, writer);
ALTER TABLE ONLY public.job
    ADD CONSTRAINT job_pkey PRIMARY KEY (name);
ALTER TABLE ONLY public.key_secret
    ADD CONSTRAINT key_secret_pkey PRIMARY KEY (secret_hash);
ALTER TABLE ONLY public.kysely_migration_lock
    ADD CONSTRAINT kysely_migration_lock_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.kysely_migration
    ADD CONSTRAINT kysely_migration_pkey PRIMARY KEY (name);
ALTER TABLE ONLY public.ledger_entry
    ADD CONSTRAINT ledger_entry_pk PRIMARY KEY (tx_id, "position");
ALTER TABLE ONLY public.ledger_tx
    ADD CONSTRAINT ledger_tx_idem_key_key UNIQUE (idem_key);
ALTER TABLE ONLY public.ledger_tx
    ADD CONSTRAINT ledger_tx_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.node
    ADD CONSTRAINT node_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.node_report
    ADD CONSTRAINT node_report_pkey PRIMARY KEY (node_id);
ALTER TABLE ONLY public.old_form
    ADD CONSTRAINT old_form_pkey PRIMARY KEY (name);
ALTER TABLE ONLY public.operator_action
    ADD CONSTRAINT operator_action_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.operator_cordon
    ADD CONSTRAINT operator_cordon_key PRIMARY KEY (profile, chain, provider);
ALTER TABLE ONLY public.operator_reload
    ADD CONSTRAINT operator_reload_pkey PRIMARY KEY (slot);
ALTER TABLE ONLY public.profile
    ADD CONSTRAINT profile_of_account UNIQUE (account_id, slug);
ALTER TABLE ONLY public.profile
    ADD CONSTRAINT profile_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.profile_revision
    ADD CONSTRAINT profile_revision_pk PRIMARY KEY (profile_id, revision);
ALTER TABLE ONLY public.provider_quota
    ADD CONSTRAINT provider_quota_pkey PRIMARY KEY (scope);
ALTER TABLE ONLY public.provider_share
    ADD CONSTRAINT provider_share_pkey PRIMARY KEY (scope, process_id);
ALTER TABLE ONLY public.purchase
    ADD CONSTRAINT purchase_offer_claim_key UNIQUE (offer_claim);
ALTER TABLE ONLY public.purchase
    ADD CONSTRAINT purchase_payment_key_key UNIQUE (payment_key);
ALTER TABLE ONLY public.purchase
    ADD CONSTRAINT purchase_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.purchase
    ADD CONSTRAINT purchase_settled_ref_key UNIQUE (settled_ref);
ALTER TABLE ONLY public.purchase_submission
    ADD CONSTRAINT purchase_submission_pk PRIMARY KEY (purchase_id, "position");
ALTER TABLE ONLY public.rate_demand
    ADD CONSTRAINT rate_demand_pkey PRIMARY KEY (scope, node_id);
ALTER TABLE ONLY public.rate_limit
    ADD CONSTRAINT rate_limit_pkey PRIMARY KEY (scope);
ALTER TABLE ONLY public.session_call
    ADD CONSTRAINT session_call_pk PRIMARY KEY (channel_id, "position");
ALTER TABLE ONLY public.session_channel
    ADD CONSTRAINT session_channel_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.session_hold
    ADD CONSTRAINT session_hold_pk PRIMARY KEY (channel_id, node_id, epoch, number);
ALTER TABLE ONLY public.session_owner
    ADD CONSTRAINT session_owner_pkey PRIMARY KEY (channel_id);
ALTER TABLE ONLY public.session_transaction
    ADD CONSTRAINT session_transaction_pkey PRIMARY KEY (tx_hash);
ALTER TABLE ONLY public.settlement_wallet
    ADD CONSTRAINT settlement_wallet_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.usage_hour
    ADD CONSTRAINT usage_hour_pk PRIMARY KEY (account_id, hour, key_id, method);
CREATE INDEX account_merged ON public.account USING btree (merged_into) WHERE (merged_into IS NOT NULL);
CREATE INDEX agent_of_account ON public.agent USING btree (account_id);
CREATE INDEX api_key_of_account ON public.api_key USING btree (account_id);
CREATE INDEX change_log_by_time ON public.change_log USING btree (at);
CREATE INDEX change_log_by_xid ON public.change_log USING btree (xid);
CREATE INDEX claim_link_of_account ON public.claim_link USING btree (account_id);
CREATE INDEX connection_by_state ON public.connection USING btree (state, expires_at);
CREATE INDEX connection_of_account ON public.connection USING btree (account_id);
CREATE INDEX console_session_by_end ON public.console_session USING btree (expires_at);
CREATE INDEX console_session_of_token ON public.console_session USING btree (token_ref, created_at);
CREATE INDEX credit_lease_of_node ON public.credit_lease USING btree (node_id, epoch);
CREATE INDEX history_hour_by_time ON public.history_hour USING btree (hour);
CREATE INDEX key_secret_of_key ON public.key_secret USING btree (key_id);
CREATE INDEX ledger_entry_in_order ON public.ledger_entry USING btree (account_id, tx_id, "position");
CREATE INDEX ledger_tx_by_time ON public.ledger_tx USING btree (created_at);
CREATE INDEX provider_share_by_time ON public.provider_share USING btree (at);
CREATE INDEX purchase_due ON public.purchase USING btree (look_at, id) WHERE (ended_at IS NULL);
CREATE INDEX purchase_held ON public.purchase USING btree (id) WHERE ((state = 'settled'::text) AND (fulfilment IS NULL));
CREATE INDEX purchase_of_account ON public.purchase USING btree ((((purpose)::jsonb ->> 'accountId'::text)), id);
CREATE INDEX purchase_of_offer ON public.purchase USING btree (offer_id);
CREATE INDEX purchase_of_transaction ON public.purchase USING btree (lower(tx_hash));
CREATE INDEX purchase_open_of_payer ON public.purchase USING btree (payer) WHERE (ended_at IS NULL);
CREATE INDEX purchase_submission_of_wallet ON public.purchase_submission USING btree (wallet_id, nonce);
CREATE INDEX purchase_submission_unpassed ON public.purchase_submission USING btree (wallet_id, nonce) WHERE ((wallet_id IS NOT NULL) AND (passed_at IS NULL));
CREATE INDEX purchase_to_blank ON public.purchase USING btree (blank_at) WHERE (blank_at IS NOT NULL);
CREATE INDEX rate_demand_by_time ON public.rate_demand USING btree (at);
CREATE INDEX rate_limit_by_end ON public.rate_limit USING btree (full_at);
CREATE INDEX session_call_by_age ON public.session_call USING btree (created_at);
CREATE INDEX session_channel_due ON public.session_channel USING btree (look_at, id) WHERE (ended_at IS NULL);
CREATE INDEX session_channel_of_payer ON public.session_channel USING btree (payer) WHERE (ended_at IS NULL);
CREATE INDEX session_hold_by_age ON public.session_hold USING btree (created_at);
CREATE INDEX session_owner_wanted ON public.session_owner USING btree (node_id, epoch) WHERE (is_wanted = 1);
CREATE INDEX session_transaction_of_channel ON public.session_transaction USING btree (channel_id);
CREATE INDEX session_transaction_open ON public.session_transaction USING btree (created_at) WHERE (ended_at IS NULL);
CREATE INDEX usage_hour_of_key ON public.usage_hour USING btree (key_id, hour);
ALTER TABLE ONLY public.agent
    ADD CONSTRAINT agent_account_id_fkey FOREIGN KEY (account_id) REFERENCES public.account(id);
ALTER TABLE ONLY public.api_key
    ADD CONSTRAINT api_key_account_id_fkey FOREIGN KEY (account_id) REFERENCES public.account(id);
ALTER TABLE ONLY public.api_key
    ADD CONSTRAINT api_key_agent_id_fkey FOREIGN KEY (agent_id) REFERENCES public.agent(id);
ALTER TABLE ONLY public.claim_link
    ADD CONSTRAINT claim_link_account_id_fkey FOREIGN KEY (account_id) REFERENCES public.account(id);
ALTER TABLE ONLY public.claim_link
    ADD CONSTRAINT claim_link_key_id_fkey FOREIGN KEY (key_id) REFERENCES public.api_key(id);
ALTER TABLE ONLY public.connection
    ADD CONSTRAINT connection_account_id_fkey FOREIGN KEY (account_id) REFERENCES public.account(id);
ALTER TABLE ONLY public.connection
    ADD CONSTRAINT connection_agent_id_fkey FOREIGN KEY (agent_id) REFERENCES public.agent(id);
ALTER TABLE ONLY public.credit_lease
    ADD CONSTRAINT credit_lease_account_id_fkey FOREIGN KEY (account_id) REFERENCES public.account(id);
ALTER TABLE ONLY public.credit_lease
    ADD CONSTRAINT credit_lease_node_id_fkey FOREIGN KEY (node_id) REFERENCES public.node(id);
ALTER TABLE ONLY public.custom_access
    ADD CONSTRAINT custom_access_account_id_fkey FOREIGN KEY (account_id) REFERENCES public.account(id);
ALTER TABLE ONLY public.feedback
    ADD CONSTRAINT feedback_account_id_fkey FOREIGN KEY (account_id) REFERENCES public.account(id);
ALTER TABLE ONLY public.key_secret
    ADD CONSTRAINT key_secret_key_id_fkey FOREIGN KEY (key_id) REFERENCES public.api_key(id);
ALTER TABLE ONLY public.ledger_entry
    ADD CONSTRAINT ledger_entry_account_id_fkey FOREIGN KEY (account_id) REFERENCES public.account(id);
ALTER TABLE ONLY public.ledger_entry
    ADD CONSTRAINT ledger_entry_tx_id_fkey FOREIGN KEY (tx_id) REFERENCES public.ledger_tx(id);
ALTER TABLE ONLY public.profile
    ADD CONSTRAINT profile_account_id_fkey FOREIGN KEY (account_id) REFERENCES public.account(id);
ALTER TABLE ONLY public.profile_revision
    ADD CONSTRAINT profile_revision_profile_id_fkey FOREIGN KEY (profile_id) REFERENCES public.profile(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.purchase_submission
    ADD CONSTRAINT purchase_submission_purchase_id_fkey FOREIGN KEY (purchase_id) REFERENCES public.purchase(id);
ALTER TABLE ONLY public.session_call
    ADD CONSTRAINT session_call_channel_id_fkey FOREIGN KEY (channel_id) REFERENCES public.session_channel(id);
ALTER TABLE ONLY public.session_hold
    ADD CONSTRAINT session_hold_channel_id_fkey FOREIGN KEY (channel_id) REFERENCES public.session_channel(id);
ALTER TABLE ONLY public.session_owner
    ADD CONSTRAINT session_owner_channel_id_fkey FOREIGN KEY (channel_id) REFERENCES public.session_channel(id);
ALTER TABLE ONLY public.session_transaction
    ADD CONSTRAINT session_transaction_channel_id_fkey FOREIGN KEY (channel_id) REFERENCES public.session_channel(id);
