import { once } from 'node:events'
import { createServer as createHttpServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { createServer, type Server } from 'node:net'
import { describe, expect, onTestFinished, test } from 'vitest'
import { pullAddress } from '../../../../core/models/hub/address.ts'
import { behindProxy } from '../../../../core/models/hub/proxy.ts'
import { type PullEvent, pullModel } from '../../../../core/models/hub/pull.ts'
import { hubUnreachable } from '../../../../core/models/hub/requests.ts'
import { hubSettings } from '../../../../core/models/hub/settings.ts'

async function listen(server: Server): Promise<number> {
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  onTestFinished(() => void server.close())
  return (server.address() as AddressInfo).port
}

/** A port without a listener. */
async function deadPort(): Promise<number> {
  const server = createServer()
  const port = await listen(server)
  server.close()
  await once(server, 'close')
  return port
}

async function pull(environment: Record<string, string>, backoffMs = 1) {
  const events: PullEvent[] = []
  const hub = hubSettings(environment)
  const retryRules = { attempts: 6, backoffMs, silenceMs: 30_000 }
  const options = {
    hub,
    signal: new AbortController().signal,
    onEvent: (one: PullEvent) => events.push(one),
    retryRules,
  }
  const reference = { repository: 'o/m', revision: 'main', file: null }
  const failure = await behindProxy(environment, () => pullModel(reference, options)).then(
    () => undefined,
    (thrown: unknown) => thrown as Error,
  )
  return { events, message: failure?.message ?? '' }
}

test('after three refused connections the download fails with the settings that the connection depends on', async () => {
  const endpoint = `http://127.0.0.1:${await deadPort()}`
  const { events, message } = await pull({ HF_ENDPOINT: endpoint, HF_HOME: '/nonexistent' })
  expect(events).toEqual([{ event: 'connect', host: endpoint.slice(7), what: 'o/m' }])
  expect(message).toContain(`${endpoint.slice(7)} cannot be reached: connect ECONNREFUSED`)
  expect(message).toContain(`No proxy is set (HTTPS_PROXY). HF_ENDPOINT, which names another hub, is ${endpoint}.`)
  expect(message).toContain('infer model add <file>')
})

test('a proxy is named without its password', async () => {
  const port = await deadPort()
  const { message } = await pull({
    HF_ENDPOINT: 'https://hub.invalid',
    HF_HOME: '/nonexistent',
    HTTPS_PROXY: `http://user:secret@127.0.0.1:${port}`,
  })
  expect(message).toContain(`Requests go through the proxy 127.0.0.1:${port} (HTTPS_PROXY).`)
  expect(message).not.toContain('secret')
})

test('without an answer of the network the download fails before the usual timeout', async () => {
  // A host that drops packets: the connection is neither established nor refused.
  const { message } = await pull({ HF_ENDPOINT: 'http://192.0.2.77:81', HF_HOME: '/nonexistent' }, 1_000)
  expect(message).toContain('192.0.2.77:81 cannot be reached')
})

test('a hub that answers slowly after the connection is waited for', async () => {
  const open: (() => void)[] = []
  const server = createServer(socket => open.push(() => socket.destroy()))
  const port = await listen(server)
  const pulling = pull({ HF_ENDPOINT: `http://127.0.0.1:${port}`, HF_HOME: '/nonexistent' }, 1)
  await once(server, 'connection')
  // Failures after the connection have the usual number of retries.
  server.on('connection', socket => socket.destroy())
  for (const end of open) end()
  const { message } = await pulling
  expect(message).toContain('The connection to 127.0.0.1')
})

describe('what somebody has to change ends the download at once', () => {
  let asked = 0
  async function answering(status: number, headers: Record<string, string> = {}): Promise<string> {
    asked = 0
    const server = createHttpServer((_, response) => {
      asked++
      response.writeHead(status, headers).end()
    })
    return `http://127.0.0.1:${await listen(server)}`
  }

  test('a proxy that wants a login', async () => {
    const http_proxy = await answering(407)
    const { message } = await pull({ HF_ENDPOINT: 'http://hub.test', HF_HOME: '/nonexistent', http_proxy })
    expect(message).toMatch(/^The proxy wants another login \(407\)\. Write it into HTTPS_PROXY/)
    expect(asked).toBe(1)
  })

  test('a redirect to itself', async () => {
    const endpoint = await answering(302, { location: '/' })
    const { message } = await pull({ HF_ENDPOINT: endpoint, HF_HOME: '/nonexistent' })
    expect(message).toMatch(/^127\.0\.0\.1:\d+ redirects in a circle\. Check the address/)
    expect(asked).toBeLessThan(30)
  })

  test.each([
    ['a login that infer does not send', 401, /wants a login \(401\), and infer sends none there/],
    ['an empty file', 416, /^127\.0\.0\.1:\d+ refused the request for \/m\.gguf: 416\.$/],
  ])('%s', async (_, status, says) => {
    const url = `${await answering(status)}/m.gguf`
    const hub = { ...hubSettings({ HF_HOME: '/nonexistent' }), token: 'hf_secret' }
    const options = { hub, signal: new AbortController().signal, onEvent: () => {} }
    await expect(pullAddress(url, '/tmp', options)).rejects.toThrow(says)
    expect(asked).toBe(1)
  })
})

test.each([
  ['Proxy response (407) !== 200 when HTTP Tunneling', /^The proxy wants another login/],
  ['connect ECONNREFUSED 192.0.2.1:407', /^The connection to hub\.test failed|192\.0\.2\.1:407/],
])('only the answer of a proxy is about its login: %s', (message, wanted) => {
  expect(
    hubUnreachable(new URL('https://hub.test'), new TypeError('fetch failed', { cause: new Error(message) })).message,
  ).toMatch(wanted)
})
