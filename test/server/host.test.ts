import { expect, test } from 'vitest'
import { hostAllowed, hostName } from '../../server/host.ts'

const allowed = new Set(['gpu.example.com'])

test.each<[string, string[], boolean]>([
  ['loopback by name', ['Host', 'localhost:8787'], true],
  ['loopback by address', ['host', '127.0.0.1:8787'], true],
  ['another address: a rebound name is needed for the attack', ['Host', '192.168.1.5'], true],
  ['IPv6', ['Host', '[::1]:8787'], true],
  ['a listed name', ['Host', 'gpu.example.com'], true],
  ['a listed name in capitals', ['Host', 'GPU.Example.com:443'], true],
  ['an unlisted name', ['Host', 'evil.example.com'], false],
  ['a name that only begins like a listed one', ['Host', 'gpu.example.com.evil.io'], false],
  ['a name that only begins like loopback', ['Host', 'localhost.evil.io'], false],
  ['no host', ['Accept', '*/*'], false],
  ['two hosts', ['Host', 'localhost', 'Host', 'localhost'], false],
  ['an empty host', ['Host', ''], false],
  ['a host with a path', ['Host', 'localhost/evil'], false],
  ['a host with user information', ['Host', 'localhost@evil.io'], false],
  ['a decimal address that some parsers take', ['Host', '2130706433'], false],
])('%s: %j → %s', (_, headers, answered) => expect(hostAllowed(headers, allowed)).toBe(answered))

test.each([
  ['[::1]:1', '::1'],
  ['A.b:80', 'a.b'],
  ['a b', undefined],
  ['a:port', undefined],
])('the name of %s is %s', (host, name) => expect(hostName(host)).toBe(name))
