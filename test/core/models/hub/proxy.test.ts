import { createServer } from 'node:http'
import { type AddressInfo, connect } from 'node:net'
import { expect, onTestFinished, test } from 'vitest'
import { behindProxy } from '../../../../core/models/hub/proxy.ts'
import { hubSettings } from '../../../../core/models/hub/settings.ts'

/** A server, and a proxy that sends every host name to it. */
async function setUp() {
  const asked: string[] = []
  const server = createServer((request, response) => response.end(`for ${request.headers.host}`))
  const proxy = createServer()
  proxy.on('connect', (request, socket) => {
    asked.push(request.url!)
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
  return { asked, local: `http://127.0.0.1:${portOf(server)}/`, HTTP_PROXY: `http://127.0.0.1:${portOf(proxy)}` }
}
const portOf = (server: ReturnType<typeof createServer>): number => (server.address() as AddressInfo).port
const read = async (url: string) => (await fetch(url)).text()

test('requests use the proxy of the environment, except those to this machine, and only during the download', async () => {
  const { asked, local, HTTP_PROXY } = await setUp()
  await behindProxy({ HTTP_PROXY }, async () => {
    expect(await read('http://hub.test/')).toBe('for hub.test')
    expect(await read(local)).toMatch(/^for 127/)
  })
  expect(asked).toEqual(['hub.test:80'])
  await expect(read('http://hub.test/')).rejects.toThrow()
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
    /^(?!.*secret).*not the address of a proxy: .*proxy\.example:port/,
  )
  expect(hubSettings({ HTTPS_PROXY: 'me:secret@proxy.example:3128' }).proxy?.address).toBe('proxy.example:3128')
})
