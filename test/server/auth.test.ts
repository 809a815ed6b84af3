import type { IncomingHttpHeaders } from 'node:http'
import { expect, test } from 'vitest'
import { credentialOf } from '../../server/auth.ts'
import { durationText } from '../../server/call.ts'
import { tidy } from '../../server/path.ts'

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
])('%j carries %s', (headers, credential) => expect(credentialOf(headers)).toBe(credential))

test.each([
  ['/std/v1/models/', '/std/v1/models'],
  ['//std//v1/models', '/std/v1/models'],
  ['/', '/'],
  ['//', '/'],
  ['/a/?b=//c/', '/a?b=//c/'],
  ['/a?b', '/a?b'],
])('%s is taken as %s', (url, clean) => expect(tidy(url)).toBe(clean))

test.each([
  [120, '120ms'],
  [6000, '6s'],
  [90_000, '1m30s'],
])('%i ms is written %s', (ms, text) => expect(durationText(ms)).toBe(text))
