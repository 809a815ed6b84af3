import { expect, test } from 'vitest'
import { hostFailure, hostName } from '../../../../server/http/connection/host.ts'

const rules = { allowed: new Set(['gpu.example.com', 'other.example.com:8443']), defaultPort: 80 }

test.each<[title: string, headers: string[], fault: string | undefined, url?: string, version?: string]>([
  ['loopback by name', ['Host', 'localhost:8787'], undefined],
  ['loopback by address', ['host', '127.0.0.1:8787'], undefined],
  ['another address: a rebound name is needed for the attack', ['Host', '192.168.1.5'], undefined],
  ['IPv6', ['Host', '[::1]:8787'], undefined],
  ['a listed name', ['Host', 'gpu.example.com'], undefined],
  ['a listed name in capitals', ['Host', 'GPU.Example.com:443'], undefined],
  ['a listed name with its port', ['Host', 'other.example.com:8443'], undefined],
  ['a listed name with another port', ['Host', 'other.example.com'], "allowed_hosts: ['other.example.com']"],
  ['an unlisted name', ['Host', 'evil.example.com:8787'], "allowed_hosts: ['evil.example.com']"],
  ['a name that only begins like a listed one', ['Host', 'gpu.example.com.evil.io'], 'invalid_host'],
  ['a name that only begins like loopback', ['Host', 'localhost.evil.io'], 'invalid_host'],
  ['no host', ['Accept', '*/*'], 'invalid_host'],
  ['no host for health', [], 'invalid_host', '/livez', '1.1'],
  ['no host for health over HTTP/1.0', [], undefined, '/livez', '1.0'],
  ['no host for readiness over HTTP/1.0', [], undefined, '/readyz', '1.0'],
  ['no host for anything else over HTTP/1.0', [], 'invalid_host', '/api/me', '1.0'],
  ['two hosts', ['Host', 'localhost', 'Host', 'localhost'], '400 invalid_value'],
  ['an empty host', ['Host', ''], 'invalid_host'],
  ['a host with a path', ['Host', 'localhost/evil'], 'invalid_host'],
  ['a host with user information', ['Host', 'localhost@evil.io'], 'invalid_host'],
  ['a decimal address that some parsers take', ['Host', '2130706433'], 'invalid_host'],
  ['one Authorization header', ['Host', 'localhost', 'Authorization', 'a'], undefined],
  ['two', ['Host', 'localhost', 'Authorization', 'a', 'authorization', 'b'], '400 invalid_value'],
  ['an absolute target of the same host', ['Host', 'localhost:80'], undefined, 'http://localhost/livez'],
  ['one of another host', ['Host', 'localhost:8787'], '400 invalid_value', 'http://evil.io/livez'],
  ['one of another port', ['Host', 'localhost:8787'], '400 invalid_value', 'http://localhost:1/livez'],
  ['one that is no URL', ['Host', 'localhost:8787'], '400 invalid_value', 'livez'],
])('%s: %j → %s', (_, rawHeaders, fault, url = '/', httpVersion = '1.1') => {
  const found = hostFailure({ rawHeaders, url, httpVersion }, rules)
  if (fault === undefined) expect(found).toBeUndefined()
  else expect(`${found?.status} ${found?.code} ${found?.message}`).toContain(fault)
})

test.each([
  ['[::1]:1', '::1'],
  ['A.b:80', 'a.b'],
  ['a b', undefined],
  ['a:port', undefined],
])('the name of %s is %s', (host, name) => expect(hostName(host)).toBe(name))
