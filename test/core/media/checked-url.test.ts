import { expect, test } from 'vitest'
import { checkedUrl, urlRules } from '../../../core/media/checked-url.ts'

const rules = urlRules({ allowed_addresses: [] }, [80, 443])

test.each<[to: string, from: string | undefined, url: string]>([
  ['http://example.com', undefined, 'http://example.com/'],
  ['https://example.com/a?b#c', undefined, 'https://example.com/a?b#c'],
  ['HTTP://EXAMPLE.com:80/', undefined, 'http://example.com/'],
  ['https://example.com/', 'http://example.com/', 'https://example.com/'],
  ['/there', 'https://example.com/here', 'https://example.com/there'],
  ['//other.example/', 'https://example.com/here', 'https://other.example/'],
  ['http://1.1.1.1/', undefined, 'http://1.1.1.1/'],
  ['http://[2606:4700::1111]/', undefined, 'http://[2606:4700::1111]/'],
  ['http://bücher.example/', undefined, 'http://xn--bcher-kva.example/'],
])('%s from %s resolves to %s', (to, from, url) => {
  expect(String(checkedUrl(to, from === undefined ? undefined : new URL(from), rules))).toBe(url)
})

test.each<[to: string, from: string | undefined, why: RegExp]>([
  ['http://example.com/', 'https://example.com/', /from https to http/],
  ['http://example.com:443/', 'https://example.com/', /from https to http/],
  ['ftp://example.com/', undefined, /scheme/],
  ['file:///etc/passwd', 'https://example.com/', /scheme/],
  ['https://user@example.com/', 'https://example.com/', /user name/],
  ['https://:word@example.com/', undefined, /user name/],
  ['https://example.com:444/', undefined, /port/],
  ['http://127.1/', undefined, /address/],
  ['https://[::1]/', 'https://example.com/', /address/],
  ['//169.254.169.254/', 'http://example.com/', /address/],
  ['http://exa mple.com/', undefined, /Invalid URL/],
])('%s from %s is refused', (to, from, why) => {
  expect(() => checkedUrl(to, from === undefined ? undefined : new URL(from), rules)).toThrow(why)
})

test.each([
  ['https://example.com/', 'example.com', true],
  ['https://a.example.com/', 'example.com', false],
  ['https://a.b.example.com./', '*.Example.com', true],
  ['https://example.com/', '*.example.com', false],
  ['https://evilexample.com/', '*.example.com', false],
])('%s is allowed by %s: %s', (url, host, isAllowed) => {
  const allowed = urlRules({ allowed_addresses: [], allowed_hosts: [host] }, [80, 443])
  const check = () => checkedUrl(url, undefined, allowed)
  if (isAllowed) expect(String(check())).toBe(url)
  else expect(check).toThrow(/host/)
})
