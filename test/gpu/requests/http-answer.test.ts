import { once } from 'node:events'
import { get, type IncomingMessage } from 'node:http'
import { type AddressInfo, createServer, type Socket } from 'node:net'
import * as fc from 'fast-check'
import { describe, expect, onTestFinished, test } from 'vitest'
import { HttpAnswer, MalformedAnswer } from '../../../gpu/requests/http-answer.ts'

interface Read {
  status: number
  headers: Record<string, string | undefined>
  body: string
  keepsAlive: boolean
  /** Bytes after the answer. */
  rest: number
}

/** Reads an answer that arrives in these pieces, after which the connection ends. Undefined: it is not complete. */
function read(pieces: readonly Buffer[]): Read | undefined {
  const found = { status: 0, headers: {}, body: '' }
  const parts: Buffer[] = []
  const answer = new HttpAnswer({
    head: (status, headers) => void Object.assign(found, { status, headers: { ...headers } }),
    data: bytes => void parts.push(bytes),
  })
  answer.begin()
  let rest = 0
  for (const piece of pieces) rest += piece.length - (answer.isComplete ? 0 : answer.read(piece))
  if (!answer.isComplete && !answer.endsWithConnection) return undefined
  return { ...found, body: Buffer.concat(parts).toString('latin1'), keepsAlive: answer.keepsAlive, rest }
}

const bytewise = (text: string) => Array.from(Buffer.from(text, 'latin1'), byte => Buffer.of(byte))
const whole = (text: string) => [Buffer.from(text, 'latin1')]
const chunked = 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n'

describe('an answer', () => {
  test.each<[what: string, text: string, wanted: Partial<Read>]>([
    [
      'with a length',
      'HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\nabc',
      { status: 200, body: 'abc', keepsAlive: true },
    ],
    ['without a reason', 'HTTP/1.1 404\r\nContent-Length:0\r\n\r\n', { status: 404, body: '', keepsAlive: true }],
    ['in chunks', `${chunked}3\r\nabc\r\nA\r\n0123456789\r\n0\r\n\r\n`, { body: 'abc0123456789', keepsAlive: true }],
    ['with extensions', `${chunked}3;a="b c"\r\nabc\r\n0;last\r\n\r\n`, { body: 'abc' }],
    ['with trailers', `${chunked}1\r\na\r\n0\r\nx: y\r\nz: 1\r\n\r\n`, { body: 'a', keepsAlive: true, rest: 0 }],
    ['that ends with the connection', 'HTTP/1.1 200 OK\r\n\r\nabc', { body: 'abc', keepsAlive: false }],
    ['without a body', 'HTTP/1.1 204 No Content\r\n\r\n', { status: 204, body: '', keepsAlive: true }],
    [
      'after an interim one',
      'HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nlink: x\r\n\r\nHTTP/1.1 200 OK\r\ncontent-length: 1\r\n\r\na',
      { status: 200, body: 'a', headers: { 'content-length': '1' } },
    ],
    [
      'that closes the connection',
      'HTTP/1.1 200 OK\r\nconnection: Upgrade, Close\r\ncontent-length: 1\r\n\r\na',
      { body: 'a', keepsAlive: false },
    ],
    ['of HTTP/1.0', 'HTTP/1.0 200 OK\r\ncontent-length: 1\r\n\r\na', { body: 'a', keepsAlive: false }],
    [
      'of HTTP/1.0 that stays',
      'HTTP/1.0 200 OK\r\nconnection: keep-alive\r\ncontent-length: 1\r\n\r\na',
      { body: 'a', keepsAlive: true },
    ],
    ['with bytes after it', 'HTTP/1.1 200 OK\r\ncontent-length: 1\r\n\r\nabc', { body: 'a', rest: 2 }],
    [
      'with a header twice, and spaces',
      'HTTP/1.1 200 OK\r\nX-A: \t1 \r\nx-a: 2\r\n__proto__: 3\r\ncontent-length: 0\r\n\r\n',
      { headers: expect.objectContaining({ 'x-a': '1, 2' }) as never },
    ],
  ])('%s', (_what, text, wanted) => {
    expect(read(whole(text))).toMatchObject(wanted)
    expect(read(bytewise(text))).toEqual(read(whole(text)))
  })

  test.each([
    ['nothing', ''],
    ['half a head', 'HTTP/1.1 200 OK\r\ncontent-le'],
    ['half a body', 'HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\nab'],
    ['half a chunk', `${chunked}3\r\nab`],
    ['no last chunk', `${chunked}3\r\nabc\r\n`],
    ['half of the trailers', `${chunked}0\r\nx: y\r\n`],
  ])('is not complete with %s', (_what, text) => {
    expect(read(whole(text))).toBeUndefined()
    expect(read(bytewise(text))).toBeUndefined()
  })

  test.each([
    ['another protocol', 'SSH-2.0-OpenSSH_9.2\r\n'],
    ['HTTP/2', 'HTTP/2 200\r\n\r\n'],
    ['a status of two digits', 'HTTP/1.1 20 OK\r\n\r\n'],
    ['another protocol from now on', 'HTTP/1.1 101 Switching Protocols\r\n\r\n'],
    ['a header without a colon', 'HTTP/1.1 200 OK\r\nabc\r\n\r\n'],
    ['a space before the colon', 'HTTP/1.1 200 OK\r\ncontent-length : 1\r\n\r\na'],
    ['a folded header', 'HTTP/1.1 200 OK\r\na: b\r\n c\r\n\r\n'],
    ['a bare line feed', 'HTTP/1.1 200 OK\r\na: b\nc: d\r\n\r\n'],
    ['a zero byte', 'HTTP/1.1 200 OK\r\na: \0\r\n\r\n'],
    ['a length that is none', 'HTTP/1.1 200 OK\r\ncontent-length: 1x\r\n\r\na'],
    ['a negative length', 'HTTP/1.1 200 OK\r\ncontent-length: -1\r\n\r\na'],
    ['two lengths', 'HTTP/1.1 200 OK\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\nab'],
    ['a length and chunks', `${chunked.slice(0, -2)}content-length: 1\r\n\r\n1\r\na\r\n0\r\n\r\n`],
    ['another transfer encoding', 'HTTP/1.1 200 OK\r\ntransfer-encoding: gzip, chunked\r\n\r\n'],
    ['a chunk without a size', `${chunked}\r\nabc`],
    ['a size that is none', `${chunked}x\r\n`],
    ['a size beyond all measure', `${chunked}fffffffffffff\r\n`],
    ['a chunk longer than its size', `${chunked}1\r\nab\r\n`],
    ['a line feed alone after a size', `${chunked}1\na\r\n`],
    ['a line feed alone after a chunk', `${chunked}1\r\na\n0\r\n\r\n`],
    ['an endless head', `HTTP/1.1 200 OK\r\na: ${'b'.repeat(17_000)}`],
    ['an endless extension', `${chunked}1;${'b'.repeat(17_000)}`],
    ['endless trailers', `${chunked}0\r\n${'a: b\r\n'.repeat(4_000)}`],
  ])('is refused with %s', (_what, text) => {
    expect(() => read(whole(text))).toThrow(MalformedAnswer)
    expect(() => read(bytewise(text))).toThrow(MalformedAnswer)
  })
})

test('nothing of an answer is read after its listener has stopped it', () => {
  const parts: string[] = []
  const answer = new HttpAnswer({
    head: () => {},
    data(bytes) {
      parts.push(bytes.toString())
      answer.stop()
    },
  })
  answer.begin()
  answer.read(Buffer.from(`${chunked}1\r\na\r\n1\r\nb\r\n0\r\n\r\n`))
  expect(parts).toEqual(['a'])
  expect(answer).toMatchObject({ isComplete: true, keepsAlive: false })
})

/** A server that sends these pieces, one after the other, and then closes the connection; asked by Node's own client. */
async function openReference(): Promise<
  (pieces: readonly Buffer[]) => Promise<Pick<Read, 'status' | 'body'> | undefined>
> {
  let pieces: readonly Buffer[] = []
  const server = createServer((socket: Socket) => {
    socket.setNoDelay(true).on('error', () => {})
    const answer = async () => {
      for (const piece of pieces) {
        socket.write(piece)
        await new Promise(setImmediate)
      }
      socket.end()
    }
    socket.once('data', () => void answer())
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  onTestFinished(() => void server.close())
  const { port } = server.address() as AddressInfo
  return async given => {
    pieces = given
    const request = get({ port, host: '127.0.0.1', agent: false })
    try {
      const [response] = (await Promise.race([
        once(request, 'response'),
        once(request, 'upgrade').then(() => [undefined]),
      ])) as [IncomingMessage | undefined]
      if (!response) return undefined
      const parts = await response.toArray()
      return { status: response.statusCode!, body: Buffer.concat(parts as Buffer[]).toString('latin1') }
    } catch {
      return undefined
    } finally {
      request.destroy()
    }
  }
}

const body = fc.string({ unit: 'binary-ascii', maxLength: 40 })
const chunks = fc.array(fc.tuple(fc.string({ unit: 'binary-ascii', minLength: 1, maxLength: 20 }), fc.boolean()), {
  maxLength: 5,
})
const inChunks = (parts: readonly (readonly [text: string, extended: boolean])[], trailers: boolean) =>
  `${parts.map(([text, extended]) => `${text.length.toString(16)}${extended ? ';a=b' : ''}\r\n${text}\r\n`).join('')}0\r\n${trailers ? 'x: y\r\n' : ''}\r\n`
const answers = fc.oneof(
  fc
    .tuple(body, fc.boolean())
    .map(
      ([text, interim]) =>
        `${interim ? 'HTTP/1.1 103 Early\r\na: b\r\n\r\n' : ''}HTTP/1.1 200 OK\r\nContent-Length: ${text.length}\r\nx: y\r\n\r\n${text}`,
    ),
  fc.tuple(chunks, fc.boolean()).map(([parts, trailers]) => `${chunked}${inChunks(parts, trailers)}`),
  body.map(text => `HTTP/1.1 500 Oh\r\nconnection: close\r\n\r\n${text}`),
)
/** A byte of the answer is replaced by another one; 0 where it stays. */
const changes = fc.option(
  fc.tuple(fc.nat(200), fc.constantFrom(0x00, 0x0a, 0x0d, 0x20, 0x30, 0x3a, 0x3b, 0x41, 0x66, 0xff)),
)

test('any answer in any pieces is read as by Node, and none that Node refuses is accepted', async () => {
  const reference = await openReference()
  await fc.assert(
    fc.asyncProperty(answers, changes, fc.array(fc.nat(200), { maxLength: 6 }), async (text, change, cuts) => {
      const bytes = Buffer.from(text, 'latin1')
      if (change && change[0] < bytes.length) bytes[change[0]] = change[1]
      const places = [0, ...cuts.filter(cut => cut < bytes.length).toSorted((a, b) => a - b), bytes.length]
      const pieces = places.slice(1).map((end, at) => bytes.subarray(places[at], end))
      let own: Read | undefined
      try {
        own = read(pieces)
      } catch (thrown) {
        expect(thrown).toBeInstanceOf(MalformedAnswer)
      }
      const wanted = await reference(pieces)
      if (own) expect({ status: own.status, body: own.body }).toEqual(wanted)
      else if (!change) expect(wanted).toBeUndefined()
    }),
    { numRuns: 300 },
  )
})
