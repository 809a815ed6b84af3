import { execFileSync } from 'node:child_process'
import { resolve } from 'node:path'
import { describe, expect, test } from 'vitest'

/** How the load client of the checks reads token streams, whatever the pieces in which they come. */
const head = 'HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n'
const event = (text: string, space = '') => `data: {"choices":[{"delta":{"content":${space}"${text}"}}]}\n\n`
const role = 'data: {"choices":[{"delta":{"role":"assistant","content":""}}]}\n\n'
const done = 'data: [DONE]\n\n'

interface Read {
  tokens: number
  /** Whether the tokens came in one read with the token before. */
  together: boolean[]
  ended: boolean
  error: string | null
}

function read(pieces: readonly string[], thenLost = false): Read {
  const program = `
import asyncio, json, sys
sys.path.insert(0, ${JSON.stringify(resolve('test/gpu/checks'))})
sys.dont_write_bytecode = True
from streams import Stream
class Transport:
    def close(self): pass
async def main():
    stream = Stream()
    stream.connection_made(Transport())
    for piece in json.loads(sys.stdin.read()):
        stream.data_received(piece.encode())
    if ${thenLost ? 'True' : 'False'}: stream.connection_lost(None)
    gaps = [gap == 0 for gap in stream.gaps()]
    tokens = sum(count for _, count in stream.reads)
    print(json.dumps({"tokens": tokens, "together": gaps, "ended": stream.ended.done(), "error": stream.error}))
asyncio.run(main())`
  return JSON.parse(
    execFileSync('python3', ['-c', program], { input: JSON.stringify(pieces), encoding: 'utf8' }),
  ) as Read
}

const ended = { ended: true, error: null }

describe('a stream is read', () => {
  const whole = head + role + event('a') + event('b', ' ') + event('\\"') + done
  test.each<[name: string, pieces: string[], expected: Partial<Read>]>([
    ['in one piece: its tokens came together', [whole], { ...ended, tokens: 3, together: [true, true] }],
    ['byte by byte', whole.split(''), { ...ended, tokens: 3 }],
    ['without a token in the event of the role', [head, role, done], { ...ended, tokens: 0 }],
    ['until the last event', [head, event('a')], { tokens: 1, ended: false, error: null }],
    [
      'with the error that ends it',
      [head, event('a'), 'data: {"error":{"message":"gone"}}\n\n'],
      { tokens: 1, ended: true, error: expect.stringContaining('"gone"') as string },
    ],
    [
      'with a status other than 200',
      ['HTTP/1.1 503 Service Unavailable\r\n\r\n{"error":"full"}'],
      { tokens: 0, ended: true, error: 'answered HTTP/1.1 503 Service Unavailable: {"error":"full"}' },
    ],
  ])('%s', (_, pieces, expected) => {
    expect(read(pieces)).toMatchObject(expected)
  })

  test('up to a connection that ends too early', () => {
    expect(read([head, event('a')], true)).toMatchObject({
      tokens: 1,
      ended: true,
      error: 'the connection ended after 1 tokens: None',
    })
  })
})
