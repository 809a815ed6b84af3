import { expect, test } from 'vitest'
import { requestPath, tidy } from '../../../server/http/path.ts'

test.each([
  ['/livez', '/livez'],
  ['/', '/'],
  ['/livez?a=/../b', '/livez'],
  ['/std/v1/models/infer/tiny-chat', '/std/v1/models/infer/tiny-chat'],
  ['/std/v1/models/infer%2Ftiny%2dchat', '/std/v1/models/infer%2Ftiny-chat'],
  ['/%6C%69vez', '/livez'],
  ['/%7Euser/%41%5F%2e', '/~user/A_.'],
  ['/a%20b/%3Ac', '/a%20b/%3Ac'],
  ['/a/../livez', '/livez'],
  ['/a/./b', '/a/b'],
  ['/%2e%2e/livez', '/livez'],
  ['/.well-known/x', '/.well-known/x'],
  ['/é', '/%C3%A9'],
  ['/a\\b', '/a/b'],
  ['http://somewhere.example/livez?x', '/livez'],
  ['http:/somewhere.example/livez', '/livez'],
  ['//somewhere.example/livez', '//somewhere.example/livez'],
  ['*', undefined],
  ['livez', undefined],
  ['/%', undefined],
  ['/%ff', undefined],
  ['/%c3%28', undefined],
])('the path of %s is %s', (url, path) => {
  expect(requestPath(url)).toBe(path)
})

test.each([
  ['/', '/'],
  ['/a', '/a'],
  ['/a/', '/a'],
  ['/a?b=/c/', '/a?b=/c/'],
  ['//a//b/?c', '/a/b?c'],
])('%s is tidied to %s', (url, path) => expect(tidy(url)).toBe(path))

test('paths of any length are read in linear time', () => {
  const started = performance.now()
  for (const part of ['/', '/a', '/.', '%41', '/a.', 'a'])
    requestPath(tidy(`/${part.repeat(16_384 / part.length)}\u0000`))
  expect(performance.now() - started).toBeLessThan(500)
})
