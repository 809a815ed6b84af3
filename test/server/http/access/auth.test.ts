import type { IncomingHttpHeaders, IncomingMessage } from 'node:http'
import { expect, test } from 'vitest'
import { credentialOf, isLocal } from '../../../../server/http/access/auth.ts'
import { durationText } from '../../../../server/http/access/rate-headers.ts'
import { tidy } from '../../../../server/http/path.ts'

test.each<[IncomingHttpHeaders, string | undefined]>([
  [{ authorization: 'Bearer sk-1' }, 'sk-1'],
  [{ authorization: 'bearer  sk-1 ' }, 'sk-1'],
  [{ authorization: 'Key sk-1' }, 'sk-1'],
  [{ authorization: 'Basic dXNlcg==' }, undefined],
  [{ authorization: 'sk-1' }, undefined],
  [{ 'x-api-key': 'sk-1' }, 'sk-1'],
  [{ 'api-key': 'sk-1' }, 'sk-1'],
  [{ authorization: 'Basic x', 'x-api-key': 'sk-1' }, 'sk-1'],
  [{}, undefined],
])('the token in %j is %s', (headers, credential) => expect(credentialOf(headers)).toBe(credential))

test.each([
  ['/std/v1/models/', '/std/v1/models'],
  ['//std//v1/models', '/std/v1/models'],
  ['/', '/'],
  ['//', '/'],
  ['/a/?b=//c/', '/a?b=//c/'],
  ['/a?b', '/a?b'],
])('%s is read as %s', (url, clean) => expect(tidy(url)).toBe(clean))

test.each([
  [120, '120ms'],
  [6000, '6s'],
  [90_000, '1m30s'],
])('%i ms is formatted as %s', (ms, text) => expect(durationText(ms)).toBe(text))

test.each<[headers: Record<string, string>, address: string, local: boolean]>([
  [{}, '127.0.0.1', true],
  [{ 'user-agent': 'prometheus' }, '::1', true],
  [{}, '10.0.0.1', false],
  [{ 'x-forwarded-for': '10.0.0.1' }, '127.0.0.1', false],
  [{ 'x-forwarded-proto': 'https' }, '127.0.0.1', false],
  [{ 'x-forwarded-host': 'a' }, '127.0.0.1', false],
  [{ forwarded: 'for=a' }, '127.0.0.1', false],
  [{ 'x-real-ip': '10.0.0.1' }, '127.0.0.1', false],
  [{ via: '1.1 proxy' }, '127.0.0.1', false],
  [{ 'sec-fetch-site': 'cross-site' }, '127.0.0.1', false],
])('%j from %s is local: %j', (headers, remoteAddress, local) =>
  expect(isLocal({ headers, socket: { remoteAddress } } as unknown as IncomingMessage)).toBe(local),
)
