import { once } from 'node:events'
import { createServer, type RequestListener, type Server } from 'node:http'
import { type AddressInfo, createServer as createSocketServer, type Server as SocketServer } from 'node:net'
import { brotliCompressSync } from 'node:zlib'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { openLog } from '../../../core/log.ts'
import type { Answer, Resolve } from '../../../core/media/checked-url.ts'
import { fetchRefusal, MediaTooLarge, openFetcher } from '../../../core/media/fetch.ts'

/** Counts connections to 127.0.0.1: there must be none. The same port on another address may be fetched from. */
let canary: SocketServer
let connections = 0
let site: Server
let port: number
const requests: { url: string; headers: Record<string, unknown>; rawHeaders: string[] }[] = []
let answer: RequestListener = (_, response) => response.end('content')
const lines: string[] = []
const log = openLog('info', line => lines.push(line))

beforeAll(async () => {
  canary = createSocketServer(socket => {
    connections++
    socket.destroy()
  }).listen(0, '127.0.0.1')
  await once(canary, 'listening')
  port = (canary.address() as AddressInfo).port
  site = createServer((request, response) => {
    requests.push({ url: request.url!, headers: request.headers, rawHeaders: request.rawHeaders })
    answer(request, response)
  }).listen(port, '127.0.0.2')
  await once(site, 'listening')
})
afterAll(() => {
  canary.close()
  site.closeAllConnections()
  site.close()
})

const organizationId = 'org_01'
const v4 = (...addresses: string[]): Answer[] =>
  addresses.map(address => ({ address, family: address.includes(':') ? 6 : 4 }))
const always =
  (answers: Answer[]): Resolve =>
  (_, done) =>
    done(null, answers)

/** Without `allowed_addresses`, on any port that the test names, so that only the address can be the reason. */
const strict = (resolve: Resolve = always([]), more: object = {}) =>
  openFetcher({ media: { allowed_addresses: [] }, log, resolve, ports: [port, 80, 443], totalMs: 3_000, ...more })
const open = (more: { resolve?: Resolve; totalMs?: number; allowed_hosts?: string[] } = {}) => {
  const { allowed_hosts, ...rest } = more
  const media = { allowed_addresses: ['127.0.0.2'], ...(allowed_hosts ? { allowed_hosts } : {}) }
  return openFetcher({ media, log, totalMs: 3_000, ...rest })
}

async function body(fetcher: ReturnType<typeof openFetcher>, url: string, maxBytes = 1000): Promise<string> {
  const pieces: Uint8Array[] = []
  await fetcher.fetch({ organizationId, url, maxBytes }, piece => pieces.push(piece))
  return Buffer.concat(pieces).toString()
}
const refusal = { name: 'Failure', code: 'url_fetch_failed', message: fetchRefusal }

/** The canary can be reached: a request that is not refused would reach it. */
test('the canary counts connections', async () => {
  const fetcher = openFetcher({ media: { allowed_addresses: ['127.0.0.1'] }, log })
  await expect(body(fetcher, `http://127.0.0.1:${port}/`)).rejects.toMatchObject(refusal)
  expect(connections).toBe(1)
  connections = 0
})

describe('no form of a private address is connected to', () => {
  test.each([
    'http://127.0.0.1:PORT/',
    'http://127.1:PORT/',
    'http://127.0.1:PORT/',
    'http://2130706433:PORT/',
    'http://0x7f000001:PORT/',
    'http://0x7f.0.0.1:PORT/',
    'http://0177.0.0.1:PORT/',
    'http://017700000001:PORT/',
    'http://127.0.0.1.:PORT/',
    'http://127。0。0。1:PORT/',
    'http://127.0.0.1:PORT/',
    'http://①②⑦.⓪.⓪.①:PORT/',
    'http://%31%32%37.0.0.1:PORT/',
    'http://0:PORT/',
    'http://0.0.0.0:PORT/',
    'http://[::1]:PORT/',
    'http://[::]:PORT/',
    'http://[0:0:0:0:0:0:0:1]:PORT/',
    'http://[::ffff:127.0.0.1]:PORT/',
    'http://[::ffff:7f00:1]:PORT/',
    'http://[::127.0.0.1]:PORT/',
    'http://[64:ff9b::127.0.0.1]:PORT/',
    'http://[64:ff9b:1::7f00:1]:PORT/',
    'http://[2002:7f00:1::1]:PORT/',
    'http://[2001:0:7f00:1::]:PORT/',
    'http://[fe80::1%25lo]:PORT/',
    'http://[::1%25lo]:PORT/',
    'http://[fc00::1]:PORT/',
    'http://[fec0::1]:PORT/',
    'http://[2001:db8::1]:PORT/',
    'http://[3fff::1]:PORT/',
    'http://10.0.0.1:PORT/',
    'http://172.16.0.1:PORT/',
    'http://192.168.1.1:PORT/',
    'http://100.64.0.1:PORT/',
    'http://169.254.169.254/latest/meta-data/',
    'http://168.63.129.16/',
    'http://192.0.0.192/',
    'http://198.18.0.1/',
    'http://224.0.0.1/',
    'http://255.255.255.255/',
    'http://user@127.0.0.1:PORT/',
    'http://user:word@example.com/',
    'http://example.com@127.0.0.1:PORT/',
    'http://127.0.0.1:PORT\\@example.com/',
    'http:\\\\127.0.0.1:PORT\\',
    'http:/127.0.0.1:PORT/',
    'http:127.0.0.1:PORT/',
    'http://127.0.0.1:PORT#@example.com/',
    'http://127.0.0.1:PORT?@example.com/',
    'http://example.com:22/',
    'https://example.com:8443/',
    'ftp://example.com/file',
    'file:///etc/passwd',
    'gopher://127.0.0.1:PORT/_x',
    'unix:/run/infer.sock',
    'http+unix://%2Frun%2Finfer.sock/',
    'data:text/plain,hello',
    'javascript:0',
    'http://',
    'http://[::1',
    'http://256.256.256.256/',
    '//127.0.0.1:PORT/',
    '',
  ])('%s', async form => {
    let asked = 0
    const fetcher = strict((_, done) => {
      asked++
      done(null, v4('127.0.0.1'))
    })
    await expect(body(fetcher, form.replace('PORT', String(port)))).rejects.toMatchObject(refusal)
    expect(connections).toBe(0)
    // A host that looks like an address is checked as one, without DNS.
    expect(asked).toBe(0)
  })
})

describe('no host name leads to a private address', () => {
  test.each<[string, Answer[]]>([
    ['a private one', v4('127.0.0.1')],
    ['a private one in IPv6', v4('::1')],
    ['a private one in disguise', v4('::ffff:127.0.0.1')],
    ['through a translator', v4('64:ff9b::7f00:1')],
    ['a private one beside a public one', v4('93.184.216.34', '127.0.0.1')],
    ['a public one beside a private one', v4('127.0.0.1', '93.184.216.34')],
    ['a platform address', v4('168.63.129.16')],
    ['with a zone', v4('fe80::1%lo')],
    ['what is no address', v4('localhost')],
    ['none', []],
  ])('%s', async (_, answers) => {
    for (const name of ['rebind.example', 'localhost.', 'LOCALHOST', 'xn--nxasmq6b.example'])
      await expect(body(strict(always(answers)), `http://${name}:${port}/`)).rejects.toMatchObject(refusal)
    expect(connections).toBe(0)
  })

  test('a host name that resolves differently each time is resolved once', async () => {
    let asked = 0
    const resolve: Resolve = (_, done) => done(null, ++asked === 1 ? v4('127.0.0.2') : v4('127.0.0.1'))
    answer = (_, response) => response.end('content')
    await expect(body(open({ resolve }), `http://rebind.example:${port}/`)).resolves.toBe('content')
    expect([asked, connections]).toEqual([1, 0])
    await expect(body(open({ resolve }), `http://rebind.example:${port}/`)).rejects.toMatchObject(refusal)
    expect([asked, connections]).toEqual([2, 0])
  })

  test('an unknown name and one without an answer are refused alike', async () => {
    const unknown: Resolve = (_, done) => done(Object.assign(new Error('no such name'), { code: 'ENOTFOUND' }), [])
    await expect(body(strict(unknown), 'http://nowhere.example/')).rejects.toMatchObject(refusal)
    await expect(
      body(
        strict(() => {}, { totalMs: 200 }),
        'http://silent.example/',
      ),
    ).rejects.toMatchObject(refusal)
  })
})

describe('redirects', () => {
  const leads = (to: string, status = 302) => {
    answer = (request, response) => {
      if (request.url === '/') response.writeHead(status, { location: to, 'set-cookie': 'a=1' }).end('moved')
      else response.end('content')
    }
  }
  const here = () => `http://127.0.0.2:${port}`

  test.each([301, 302, 303, 307, 308])('%d is followed, without credentials', async status => {
    requests.length = 0
    leads('/there?x=1#fragment', status)
    await expect(body(open(), `${here()}/`)).resolves.toBe('content')
    expect(requests.map(({ url }) => url)).toEqual(['/', '/there?x=1'])
    for (const { headers } of requests)
      expect(Object.keys(headers).sort()).toEqual(['accept', 'accept-encoding', 'connection', 'host', 'user-agent'])
    expect(requests[1]!.headers['accept-encoding']).toBe('identity')
  })

  test.each([
    'http://127.0.0.1:PORT/',
    '//127.0.0.1:PORT/',
    'http://2130706433:PORT/',
    'http://[::ffff:127.0.0.1]:PORT/',
    'http://a:b@127.0.0.2:PORT/',
    'file:///etc/passwd',
    'data:text/plain,hello',
    'http://[',
  ])('to %s are refused', async to => {
    leads(to.replace('PORT', String(port)))
    await expect(body(open(), `${here()}/`)).rejects.toMatchObject(refusal)
    expect(connections).toBe(0)
  })

  test('three are followed, four are not', async () => {
    let most = 3
    answer = (request, response) => {
      const step = Number(request.url!.slice(1))
      if (step < most) response.writeHead(302, { location: `/${step + 1}` }).end()
      else response.end('content')
    }
    await expect(body(open(), `${here()}/0`)).resolves.toBe('content')
    most = 4
    await expect(body(open(), `${here()}/0`)).rejects.toMatchObject(refusal)
  })
})

describe('answers', () => {
  const url = () => `http://127.0.0.2:${port}/file`

  test('any port of an allowed address is fetched from, and with listed names no other name', async () => {
    answer = (_, response) => response.end('content')
    const resolve = always(v4('127.0.0.2'))
    const fetcher = open({ resolve, allowed_hosts: ['*.example.com', 'Files.example.org'] })
    for (const host of ['a.example.com', 'a.b.EXAMPLE.com', 'files.example.org'])
      await expect(body(fetcher, `http://${host}:${port}/`)).resolves.toBe('content')
    for (const host of ['example.com', 'badexample.com', 'a.example.com.evil.org', 'a.files.example.org', '127.0.0.2'])
      await expect(body(fetcher, `http://${host}:${port}/`)).rejects.toMatchObject(refusal)
  })

  test.each<[string, RequestListener]>([
    ['nothing', (_, response) => response.end()],
    ['a hang-up', request => request.socket.destroy()],
    ['no HTTP', request => request.socket.end('hello\r\n')],
    [
      'headers without end',
      request => {
        request.socket.write('HTTP/1.1 200 OK\r\n')
        const more = () => {
          while (request.socket.writable && request.socket.write(`x-filler: ${'y'.repeat(8000)}\r\n`));
        }
        request.socket.on('drain', more).on('error', () => {})
        more()
      },
    ],
  ])('%s has the same refusal', async (_, listener) => {
    answer = listener
    await expect(body(open({ totalMs: 700 }), url())).rejects.toMatchObject(refusal)
  })

  test.each<[what: string, message: RegExp, listener: RequestListener]>([
    ...(
      [
        [401, /status 401: it refuses the file/],
        [403, /status 403: it refuses the file\. Send a URL that needs no login and has not expired/],
        [404, /status 404: there is no such file/],
        [410, /status 410: there is no such file/],
        [429, /status 429: it got too many requests\. Try again later/],
        [206, /status 206 instead of the file/],
        [302, /status 302 instead of the file/],
        [500, /status 500 instead of the file/],
      ] as const
    ).map(([status, message]): [string, RegExp, RequestListener] => [
      `status ${status}`,
      message,
      (_, response) => response.writeHead(status).end('not here'),
    ]),
    [
      'something compressed',
      /compresses the file/,
      (_, response) => response.writeHead(200, { 'content-encoding': 'br' }).end(brotliCompressSync(Buffer.alloc(1e6))),
    ],
    [
      'an end that comes too soon',
      /ended the connection before it had sent the whole file/,
      (_, response) => response.writeHead(200, { 'content-length': '10' }).write('12345', () => response.destroy()),
    ],
    [
      'more bytes announced than there are',
      /ended the connection before it had sent the whole file/,
      (request, response) => {
        response.writeHead(200, { 'content-length': '10' })
        response.write('12345', () => request.socket.end())
      },
    ],
    ['silence', /did not send the whole file within 0\.3 seconds/, () => {}],
    [
      'a trickle',
      /did not send the whole file within 0\.3 seconds/,
      (_, response) => {
        const drop = setInterval(() => response.write('x'), 50)
        response.on('close', () => clearInterval(drop))
      },
    ],
  ])('%s is named', async (_, message, listener) => {
    answer = listener
    await expect(body(open({ totalMs: 300 }), url())).rejects.toMatchObject({
      code: 'url_fetch_failed',
      message: expect.stringMatching(message) as string,
    })
  })

  test.each<[string, RequestListener]>([
    ['announced', (_, response) => response.writeHead(200, { 'content-length': '1001' }).end(Buffer.alloc(1001))],
    [
      'endless',
      (_, response) => {
        const more = () => {
          while (response.write(Buffer.alloc(10_000)));
        }
        response.on('drain', more)
        more()
      },
    ],
  ])('too many bytes have their own error and are not read: %s', async (_, listener) => {
    answer = listener
    let taken = 0
    const fetching = open().fetch({ organizationId, url: url(), maxBytes: 1000 }, piece => (taken += piece.byteLength))
    await expect(fetching).rejects.toBeInstanceOf(MediaTooLarge)
    expect(taken).toBeLessThanOrEqual(1000)
  })

  test('exactly the limit is accepted', async () => {
    answer = (_, response) => response.end(Buffer.alloc(1000, 'a'))
    await expect(body(open(), url())).resolves.toHaveLength(1000)
  })

  test('an abort ends the fetch with its reason', async () => {
    const closed = Promise.withResolvers<void>()
    const asked = Promise.withResolvers<void>()
    answer = request => {
      request.socket.once('close', () => closed.resolve())
      asked.resolve()
    }
    const control = new AbortController()
    const fetching = open().fetch({ organizationId, url: url(), maxBytes: 1000, signal: control.signal }, () => {})
    void asked.promise.then(() => control.abort(new Error('gone')))
    await expect(fetching).rejects.toThrow('gone')
    await closed.promise
  })
})

test('the log has the reason with the host only', () => {
  const mine = lines.filter(line => line.includes('was not fetched'))
  expect(mine.some(line => line.includes('"why":"Error: address"') && line.includes('"host":"127.0.0.1"'))).toBe(true)
  expect(mine.some(line => /there\?x=1|meta-data|user:word/.test(line))).toBe(false)
})
