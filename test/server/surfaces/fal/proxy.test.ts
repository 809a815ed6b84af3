import { expect, test } from 'vitest'
import { pathOfTarget, unproxied } from '../../../../server/surfaces/fal/addresses.ts'

test.each([
  ['https://queue.fal.run/demo/video', '/fal/queue/demo/video'],
  ['https://queue.fal.run/demo/video/requests/q_1/status?logs=1', '/fal/queue/demo/video/requests/q_1/status?logs=1'],
  ['https://fal.run/demo/picture', '/fal/run/demo/picture'],
  ['https://FAL.run:443/demo/picture/stream', '/fal/run/demo/picture/stream'],
  [
    'https://rest.fal.ai/storage/upload/initiate?storage_type=fal-cdn-v3',
    '/fal/rest/storage/upload/initiate?storage_type=fal-cdn-v3',
  ],
  ['https://queue.fal.run', '/fal/queue/'],
])('%s is %s', (target, path) => {
  expect(pathOfTarget(target)).toBe(path)
})

test.each([
  '',
  'demo/video',
  '//queue.fal.run/x',
  'http://queue.fal.run/x',
  'ftp://queue.fal.run/x',
  'https://queue.fal.run:8443/x',
  'https://fal.run.example/x',
  'https://example/https://queue.fal.run/x',
  'https://queue.fal.run@example/x',
  'https://user@queue.fal.run/x',
  'https://user:word@queue.fal.run/x',
  'https://queue.fal.run\\@example/x',
  'https://example\\@queue.fal.run/x',
  'https://queue.fal.run.:443/x',
  'https://xn--queue-fal-run/x',
  'https://127.0.0.1/x',
  'https://[::1]/x',
  'https://169.254.169.254/latest/meta-data',
  'https://rest.alpha.fal.ai/x',
  'https://constructor/x',
  'file:///etc/passwd',
  'javascript:alert(1)',
  `https://queue.fal.run/${'x'.repeat(8_000)}`,
])('%j is not an address of fal', target => {
  const path = pathOfTarget(target)
  // URL parsers treat a backslash as a slash, so this one is a path of an allowed host.
  if (target === 'https://queue.fal.run\\@example/x') expect(path).toBe('/fal/queue/@example/x')
  else expect(path).toBeUndefined()
})

test('whatever the path of the address, it stays below its root', () => {
  const ways = ['..', '%2e%2e', '%2E.', '.%2e', '..\\', '..%2f', '..%5c', '%252e%252e', '...', '..;', '\t..', '..\n']
  for (const way of ways)
    for (const rest of ['api/me', 'fal/proxy', `${way}/api/jobs`]) {
      const path = pathOfTarget(`https://queue.fal.run/${way}/${way}/${rest}`)!
      // Parsed once more, as the router does, for dot segments that only appear now.
      expect(new URL(path, 'http://x').pathname, way).toMatch(/^\/fal\/queue(\/|$)/)
    }
})

test('only requests to the proxy have a target address, and only those that name one', () => {
  const headers = { 'x-fal-target-url': 'https://fal.run/demo/picture' }
  expect(unproxied('/fal/proxy', headers)).toBe('/fal/run/demo/picture')
  expect(unproxied('/fal/proxy?x=1', headers)).toBe('/fal/run/demo/picture')
  expect(unproxied('/fal/proxy', {})).toBe('/fal/proxy')
  expect(unproxied('/fal/proxy', { 'x-fal-target-url': 'https://example/' })).toBe('/fal/proxy')
  expect(unproxied('/fal/proxy/x', headers)).toBe('/fal/proxy/x')
  expect(unproxied('/api/me', headers)).toBe('/api/me')
})
