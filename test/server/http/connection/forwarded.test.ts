import { connect } from 'node:net'
import { text } from 'node:stream/consumers'
import { expect, test } from 'vitest'
import { parseConfig } from '../../../../core/models/config.ts'
import { clientAddress, requestOrigin } from '../../../../server/http/connection/forwarded.ts'
import { fakeModel, startApp } from '../../../_app.ts'

const request = (headers: Record<string, string>, remoteAddress = '10.0.0.7') =>
  ({ headers: { host: 'inner:8787', ...headers }, socket: { remoteAddress } }) as never
const proxies = ['10.0.0.0/8']
const forwarded = { 'x-forwarded-proto': 'https', 'x-forwarded-host': 'gpu.example', 'x-forwarded-for': '203.0.113.9' }

test.each([
  ['a trusted proxy', request(forwarded), 'https://gpu.example', '203.0.113.9'],
  ['a stranger', request(forwarded, '203.0.113.5'), 'http://inner:8787', '203.0.113.5'],
  ['an IPv4 address in IPv6', request(forwarded, '::ffff:10.0.0.7'), 'https://gpu.example', '203.0.113.9'],
  ['no headers', request({}), 'http://inner:8787', '10.0.0.7'],
  ['the scheme alone', request({ 'x-forwarded-proto': 'https' }), 'https://inner:8787', '10.0.0.7'],
  ['another scheme', request({ 'x-forwarded-proto': 'javascript' }), 'http://inner:8787', '10.0.0.7'],
  [
    'what a client has put before what the proxy added',
    request({
      'x-forwarded-proto': 'http, https',
      'x-forwarded-host': 'evil.example, gpu.example',
      'x-forwarded-for': '1.2.3.4, 203.0.113.9, 10.0.0.8',
    }),
    'https://gpu.example',
    '203.0.113.9',
  ],
])('%s', (_, req, origin, address) => {
  expect([requestOrigin(req, proxies), clientAddress(req, proxies)]).toEqual([origin, address])
})

test('without trusted proxies the headers are ignored', () => {
  expect([requestOrigin(request(forwarded), []), clientAddress(request(forwarded), [])]).toEqual([
    'http://inner:8787',
    '10.0.0.7',
  ])
})

test.each(['nonsense', '10.0.0.0/40'])('the proxy %s is refused with its index', proxy => {
  expect(() => parseConfig(`trusted_proxies: ['${proxy}']\n`, 'infer.yaml')).toThrow(
    /infer\.yaml:1.*'trusted_proxies\[0\]': must be an IP address or a network/,
  )
})

/** fetch sends its own Host, so this is written by hand. */
async function fileAddresses(url: string, secret: string, headers: Record<string, string>) {
  const body = JSON.stringify({ content_type: 'image/png', file_name: 'cat.png' })
  const { hostname, port } = new URL(url)
  const head = {
    Host: 'inner',
    Authorization: `Bearer ${secret}`,
    'Content-Type': 'application/json',
    'Content-Length': String(body.length),
    Connection: 'close',
    ...headers,
  }
  const lines = Object.entries(head).map(([name, value]) => `${name}: ${value}`)
  const socket = connect(Number(port), hostname)
  socket.write(
    `POST /fal/rest/storage/upload/initiate?storage_type=fal-cdn-v3 HTTP/1.1\r\n${lines.join('\r\n')}\r\n\r\n${body}`,
  )
  return text(socket)
}

test.each([
  [
    'public_url',
    { public_url: 'https://ai.example/infer/' },
    { Host: 'ai.example' },
    'https://ai.example/infer/files/',
  ],
  [
    'trusted_proxies',
    { trusted_proxies: ['127.0.0.1'], allowed_hosts: ['gpu.example'] },
    { Host: '127.0.0.1', 'X-Forwarded-Proto': 'https', 'X-Forwarded-Host': 'gpu.example' },
    'https://gpu.example/files/',
  ],
  ['allowed_hosts', { allowed_hosts: ['inner'] }, { 'X-Forwarded-Proto': 'https' }, 'http://inner/files/'],
])('addresses of files follow %s', async (_, config, headers, start) => {
  await using app = await startApp({ models: [fakeModel('fake')], ...config })
  expect(await fileAddresses(app.url, app.secret, headers)).toContain(`"file_url":"${start}`)
})

test('a host reported by a proxy must be allowed too', async () => {
  await using app = await startApp({ models: [fakeModel('fake')], trusted_proxies: ['127.0.0.1'] })
  const answer = await fileAddresses(app.url, app.secret, { Host: '127.0.0.1', 'X-Forwarded-Host': 'evil.example' })
  expect(answer).toContain("does not accept the host name 'evil.example'")
  expect(answer).toContain('allowed_hosts')
})
