import { createServer, type Server } from 'node:net'
import { networkInterfaces } from 'node:os'
import { afterEach, expect, test } from 'vitest'
import { openListener } from '../../../../server/http/connection/listen.ts'

const opened: { close(): unknown }[] = []
afterEach(() => {
  for (const server of opened.splice(0)) server.close()
})

async function listen(at: string, handler = () => {}) {
  const configured: unknown[] = []
  const listener = await openListener({ handler, at, https: undefined, configure: server => configured.push(server) })
  opened.push(listener.server)
  expect(configured).toEqual([listener.server])
  return listener
}

/** A program that listens on a port. */
function occupy(port: number): Promise<Server> {
  const server = createServer()
  opened.push(server)
  return new Promise((resolve, reject) => {
    server.once('error', reject)
    server.listen(port, '127.0.0.1', () => resolve(server))
  })
}

test.each([
  ['127.0.0.1:0', 'http://127.0.0.1:'],
  [':0', 'http://127.0.0.1:'],
  ['localhost:0', 'http://'],
])('%s opens a free port and not port 3000', async (at, begins) => {
  const { urls, server } = await listen(at)
  const { port } = server.address() as { port: number }
  expect(port).not.toBe(3_000)
  expect(urls).toEqual([expect.stringMatching(new RegExp(`^${begins.replaceAll('.', '\\.')}.*:?${port}$`))])
})

test('a socket on every address is listed under the addresses for other machines, this machine first', async () => {
  const others = Object.values(networkInterfaces())
    .flatMap(all => all ?? [])
    .filter(({ internal, family, address }) => !internal && family === 'IPv4' && !address.startsWith('169.254.'))
    .map(({ address }) => address)
  const { urls, server } = await listen('0.0.0.0:0')
  const { port } = server.address() as { port: number }
  expect(urls[0]).toBe(`http://127.0.0.1:${port}`)
  expect(urls.slice(1).toSorted()).toEqual([...new Set(others)].map(address => `http://${address}:${port}`).toSorted())
})

test('two at once have separate configurations', async () => {
  const [one, other] = await Promise.all([listen('127.0.0.1:0', () => {}), listen('127.0.0.1:0', () => {})])
  expect(one.urls).not.toEqual(other.urls)
})

test('a port in use is refused with what to do', async () => {
  const { port } = (await occupy(0)).address() as { port: number }
  await expect(listen(`127.0.0.1:${port}`)).rejects.toMatchObject({
    code: 'conflict',
    message: `Cannot listen on 127.0.0.1:${port}: another program listens there (node, process ${process.pid}). Stop it, or choose another address with --listen.`,
  })
})

test('a port that speaks another protocol is refused, and no other port is opened instead', async () => {
  await expect(listen('127.0.0.1:6000')).rejects.toMatchObject({
    code: 'invalid_value',
    message: expect.stringContaining('Choose another port'),
  })
  await occupy(3_000)
})

test.each([
  ['nowhere', 'invalid_value', 'is not host:port'],
  ['127.0.0.1', 'invalid_value', 'is not host:port'],
  ['127.0.0.1:99999', 'invalid_value', 'is not host:port'],
  ['198.51.100.7:0', 'conflict', '198.51.100.7 is no address of this machine. Name one of its own with --listen.'],
  ['no-such-host.invalid:0', 'conflict', 'no-such-host.invalid'],
])('%s is refused: %s', async (at, code, message) => {
  await expect(listen(at)).rejects.toMatchObject({ code, message: expect.stringContaining(message) })
})
