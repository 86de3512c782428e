#!/usr/bin/python3
# The Azure CLI as far as a join needs it: login --service-principal, and
# account get-access-token --output json. Its login is in $AZURE_CONFIG_DIR or ~/.azure,
# and it asks the authority that /etc/az-authority names. Exit codes as the real one's: 1
# for what Azure or the login refuses, 2 for a command line that it does not know.
import argparse, datetime, json, os, ssl, sys, urllib.error, urllib.parse, urllib.request

CONFIG = os.environ.get("AZURE_CONFIG_DIR", os.path.expanduser("~/.azure"))
LOGIN = os.path.join(CONFIG, "service_principal_entries.json")


def fail(text):
    print("ERROR: " + text, file=sys.stderr)
    sys.exit(1)


def token(tenant, login, resource):
    form = {"grant_type": "client_credentials", "client_id": login["client_id"], "client_secret": login["client_secret"], "scope": resource + "/.default"}
    url = open("/etc/az-authority").read().strip() + "/" + tenant + "/oauth2/v2.0/token"
    try:
        with urllib.request.urlopen(url, data=urllib.parse.urlencode(form).encode(), context=ssl._create_unverified_context()) as r:
            return json.load(r)
    except urllib.error.HTTPError as e:
        said = json.loads(e.read() or b"{}")
        fail(said.get("error_description", "HTTP status %d" % e.code))
    except OSError as e:
        fail("Failed to connect to %s. %s" % (url, e))


def log_in(args):
    login = {"client_id": args.username, "tenant": args.tenant, "client_secret": args.password}
    token(args.tenant, login, "https://management.azure.com")
    os.makedirs(CONFIG, mode=0o700, exist_ok=True)
    with open(os.open(LOGIN, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as f:
        json.dump([login], f)


def get_access_token(args):
    if not os.path.exists(LOGIN):
        fail("Please run 'az login' to setup account.")
    login = json.load(open(LOGIN))[0]
    tenant = args.tenant or login["tenant"]
    got = token(tenant, login, args.resource)
    ends = datetime.datetime.now() + datetime.timedelta(seconds=got["expires_in"])
    json.dump({"accessToken": got["access_token"], "expiresOn": ends.strftime("%Y-%m-%d %H:%M:%S.%f"), "expires_on": int(ends.timestamp()),
               "tenant": tenant, "tokenType": got["token_type"]}, sys.stdout, indent=2)
    print()


az = argparse.ArgumentParser("az")
commands = az.add_subparsers(required=True)
login = commands.add_parser("login")
login.add_argument("--service-principal", action="store_true", required=True)
for name in "username", "password", "tenant":
    login.add_argument("--" + name, required=True)
login.set_defaults(do=log_in)
get = commands.add_parser("account").add_subparsers(required=True).add_parser("get-access-token")
get.add_argument("--output", choices=["json"], required=True)
get.add_argument("--resource", required=True)
get.add_argument("--tenant")
get.set_defaults(do=get_access_token)
args = az.parse_args()
args.do(args)
