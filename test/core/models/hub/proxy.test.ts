import { createServer, type IncomingMessage } from 'node:http'
import { type AddressInfo, connect } from 'node:net'
import { expect, onTestFinished, test } from 'vitest'
import { behindProxy } from '../../../../core/models/hub/proxy.ts'
import { hubSettings } from '../../../../core/models/hub/settings.ts'

/** A server, and a proxy that sends every host name to it, if the login is right. */
async function setUp(login?: string) {
  const asked: string[] = []
  const server = createServer((request, response) => response.end(`for ${request.headers.host}`))
  const wanted = login && `Basic ${Buffer.from(login).toString('base64')}`
  const isRefused = ({ headers }: IncomingMessage) => wanted !== undefined && headers['proxy-authorization'] !== wanted
  const proxy = createServer((request, response) => {
    asked.push(request.url!)
    if (isRefused(request)) response.writeHead(407).end()
    else response.end(`for ${request.headers.host}`)
  })
  proxy.on('connect', (request, socket) => {
    asked.push(request.url!)
    if (isRefused(request)) return void socket.end('HTTP/1.1 407 No\r\ncontent-length: 0\r\n\r\n')
    const onward = connect(portOf(server), '127.0.0.1', () => {
      socket.write('HTTP/1.1 200 OK\r\n\r\n')
      onward.pipe(socket).pipe(onward)
    })
    for (const one of [onward, socket]) one.on('error', () => undefined)
  })
  for (const one of [server, proxy]) {
    await new Promise<void>(resolve => one.listen(0, '127.0.0.1', resolve))
    onTestFinished(() => {
      one.close()
      one.closeAllConnections()
    })
  }
  const address = `127.0.0.1:${portOf(proxy)}`
  return { asked, address, local: `http://127.0.0.1:${portOf(server)}/`, HTTP_PROXY: `http://${address}` }
}
const portOf = (server: ReturnType<typeof createServer>): number => (server.address() as AddressInfo).port
const read = async (url: string) => (await fetch(url)).text()

test('requests use the proxy of the environment, except those to this machine, and only during the download', async () => {
  const { asked, local, HTTP_PROXY } = await setUp()
  await behindProxy({ HTTP_PROXY }, async () => {
    expect(await read('http://hub.test/')).toBe('for hub.test')
    expect(await read(local)).toMatch(/^for 127/)
  })
  expect(asked).toEqual(['http://hub.test/'])
  await expect(read('http://hub.test/')).rejects.toThrow()
})

test('a proxy without a scheme, with a login, and a tunnel for https', async () => {
  const { asked, address } = await setUp('me:a b@c')
  const proxy = `me:a%20b%40c@${address}`
  await behindProxy({ http_proxy: proxy, https_proxy: proxy }, async () => {
    expect(await read('http://hub.test/')).toBe('for hub.test')
    // The server behind the tunnel speaks no TLS.
    await expect(read('https://hub.test/')).rejects.toThrow()
  })
  expect(asked).toEqual(['http://hub.test/', 'hub.test:443'])
})

test.each(['*', '*, x.test'])('NO_PROXY %j means no proxy at all', async no_proxy => {
  const { asked, HTTP_PROXY } = await setUp()
  await expect(behindProxy({ HTTP_PROXY, no_proxy }, () => read('http://hub.test/'))).rejects.toThrow()
  expect(asked).toEqual([])
})

test('NO_PROXY is respected', async () => {
  const { asked, HTTP_PROXY } = await setUp()
  await expect(behindProxy({ HTTP_PROXY, no_proxy: 'hub.test' }, () => read('http://hub.test/'))).rejects.toThrow()
  expect(asked).toEqual([])
})

test('an invalid proxy is named, and without one nothing changes', async () => {
  await expect(behindProxy({ HTTPS_PROXY: 'not an address' }, async () => 1)).rejects.toThrow(
    /HTTPS_PROXY is not the address/,
  )
  expect(await behindProxy({ NO_PROXY: 'x' }, async () => 1)).toBe(1)
})

test('the password of an invalid proxy is not shown', async () => {
  const HTTPS_PROXY = 'http://me:secret@proxy.example:port'
  await expect(behindProxy({ HTTPS_PROXY }, async () => 1)).rejects.toThrow(
    /^(?!.*secret).*not the address of a proxy: '.*proxy\.example:port/,
  )
  expect(hubSettings({ HTTPS_PROXY: 'me:secret@proxy.example:3128' }).proxy?.address).toBe('proxy.example:3128')
})
