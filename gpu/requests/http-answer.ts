/** An answer that is not HTTP/1.1, as RFC 9112 has it. */
export class MalformedAnswer extends Error {}

/** By name in lower case. Values of a repeated name are joined by commas. */
export type AnswerHeaders = Readonly<Record<string, string | undefined>>

export interface AnswerListener {
  head(status: number, headers: AnswerHeaders): void
  /** A part of the body. It belongs to the listener, which may keep it without copying. */
  data(bytes: Buffer): void
}

/** Bytes of a head, of the trailers, and of the extensions of one chunk. */
const maxHeadBytes = 16 << 10
const endOfHead = Buffer.from('\r\n\r\n')
const [lineFeed, carriageReturn, semicolon] = [0x0a, 0x0d, 0x3b]

const statusLine = String.raw`HTTP\/1\.([01]) ([1-9]\d\d)(?: [\t\x20-\x7e\x80-\xff]*)?\r\n`
const token = String.raw`[\w!#$%&'*+.^\x60|~-]+`
const headerLine = String.raw`${token}:[\t\x20-\x7e\x80-\xff]*\r\n`
const wellFormed = new RegExp(`^${statusLine}(?:${headerLine})*$`)
const trailers = new RegExp(`^(?:${headerLine})*$`)
const extensions = new RegExp(
  String.raw`^(?:;${token}(?:=(?:${token}|"(?:[\t\x20!\x23-\x5b\x5d-\x7e]|\\[\t\x20-\x7e])*"))?)*$`,
)

const version = 'HTTP/1.'
const notHttp = () => new MalformedAnswer('Its head is not that of HTTP/1.1.')
const notInChunks = () => new MalformedAnswer('Its body is not in chunks.')

type Phase = 'head' | 'counted' | 'until closed' | Chunked | 'complete'
/** Where a chunked body is. `extension`: between a size and the end of its line. */
type Chunked = 'size' | 'extension' | 'size end' | 'chunk' | 'chunk end' | 'chunk line end' | 'trailer'

/** Returns the value of a hexadecimal digit; -1 for another byte. */
function digitOf(byte: number): number {
  if (byte >= 0x30 && byte <= 0x39) return byte - 0x30
  const lower = byte | 0x20
  return lower >= 0x61 && lower <= 0x66 ? lower - 0x57 : -1
}

/** Returns the headers of a head that is well-formed, from after its status line. */
function headersIn(text: string, from: number): AnswerHeaders {
  const headers: Record<string, string> = {}
  for (let start = from; start < text.length; ) {
    const end = text.indexOf('\r\n', start)
    const colon = text.indexOf(':', start)
    const name = text.slice(start, colon).toLowerCase()
    const value = text.slice(colon + 1, end).trim()
    headers[name] = Object.hasOwn(headers, name) ? `${headers[name]}, ${value}` : value
    start = end + 2
  }
  return headers
}

/**
 * Reads the answers on a connection, one after the other, from bytes as they arrive: no copy, no stream, one call for each
 * part. A part of a body is passed on as soon as it is there. It is as strict as Node's own parser.
 */
export class HttpAnswer {
  /** Whether another request may be sent on the connection after this answer. */
  keepsAlive = true
  /** What the `keep-alive` header says. */
  keepAlive: string | undefined
  #listener: AnswerListener
  #phase: Phase = 'complete'
  /** Bytes of an unfinished head. */
  #begun: Buffer | undefined
  /** Bytes of the body, or of the chunk, that are to come. */
  #left = 0
  #digits = 0
  /** The extensions of the chunk, or the trailers, as far as they are read. */
  #extra = ''

  constructor(listener: AnswerListener) {
    this.#listener = listener
  }

  /** Expects the answer to another request. */
  begin(): void {
    this.#phase = 'head'
    this.#begun = undefined
    this.keepsAlive = true
  }

  get isComplete(): boolean {
    return this.#phase === 'complete'
  }

  /** Whether it is complete when the connection ends now. */
  get endsWithConnection(): boolean {
    return this.#phase === 'until closed'
  }

  /**
   * Reads bytes. Throws MalformedAnswer. Returns how many of them belong to the answer: fewer than there are once it is complete,
   * or if its listener has stopped it.
   */
  read(bytes: Buffer): number {
    let at = 0
    while (at < bytes.length && this.#phase !== 'complete') {
      if (this.#phase === 'head') at = this.#readHead(bytes, at)
      else if (this.#phase === 'counted' || this.#phase === 'chunk') at = this.#readBody(bytes, at)
      else if (this.#phase === 'until closed') {
        this.#listener.data(at === 0 ? bytes : bytes.subarray(at))
        at = bytes.length
      } else this.#readByte(bytes[at++]!)
    }
    return at
  }

  /** Nothing more is read. */
  stop(): void {
    this.#phase = 'complete'
    this.keepsAlive = false
  }

  #readHead(bytes: Buffer, from: number): number {
    const begun = this.#begun
    const all = begun ? Buffer.concat([begun, from === 0 ? bytes : bytes.subarray(from)]) : bytes
    const start = begun ? 0 : from
    const end = all.indexOf(endOfHead, begun ? Math.max(0, begun.length - 3) : from)
    if ((end < 0 ? all.length : end) - start > maxHeadBytes)
      throw new MalformedAnswer(`Its head has more than ${maxHeadBytes} bytes.`)
    if (end < 0) {
      this.#begun = start === 0 ? all : all.subarray(start)
      // Another protocol may never send the end of a head.
      const first = this.#begun.toString('latin1', 0, version.length)
      if (!version.startsWith(first)) throw notHttp()
      return bytes.length
    }
    this.#begun = undefined
    const after = end + endOfHead.length - (begun ? begun.length - from : 0)
    this.#head(all.toString('latin1', start, end + 2))
    return after
  }

  #head(text: string): void {
    const match = wellFormed.exec(text)
    const status = Number(match?.[2])
    // Only 1.1 has interim answers.
    if (!match || (status < 200 && match[1] === '0')) throw notHttp()
    if (status === 101) throw new MalformedAnswer('It switches to another protocol.')
    // The answer itself follows.
    if (status < 200) return
    const headers = headersIn(text, text.indexOf('\r\n') + 2)
    const { connection, 'content-length': length, 'transfer-encoding': encoding } = headers
    this.keepsAlive = match[1] === '1' ? !/\bclose\b/i.test(connection ?? '') : /\bkeep-alive\b/i.test(connection ?? '')
    this.keepAlive = headers['keep-alive']
    this.#phase = this.#phaseAfterHead(status, length, encoding)
    const isEmpty = this.#phase === 'complete'
    // The end is reported after the head.
    if (isEmpty) this.#phase = 'counted'
    this.#listener.head(status, headers)
    if (isEmpty) this.#phase = 'complete'
  }

  #phaseAfterHead(status: number, length: string | undefined, encoding: string | undefined): Phase {
    if (status === 204 || status === 304) return 'complete'
    if (encoding !== undefined) {
      if (length !== undefined || encoding.toLowerCase() !== 'chunked')
        throw new MalformedAnswer(
          `It has the transfer encoding '${encoding}'${length === undefined ? '' : ' and a length'}.`,
        )
      return this.#nextSize()
    }
    if (length === undefined) {
      this.keepsAlive = false
      return 'until closed'
    }
    if (!/^\d{1,15}$/.test(length)) throw new MalformedAnswer(`'${length}' is not the length of a body.`)
    this.#left = Number(length)
    return this.#left === 0 ? 'complete' : 'counted'
  }

  #nextSize(): Phase {
    this.#left = 0
    this.#digits = 0
    this.#extra = ''
    return 'size'
  }

  #readBody(bytes: Buffer, at: number): number {
    const end = Math.min(bytes.length, at + this.#left)
    this.#left -= end - at
    const isLast = this.#left === 0 && this.#phase === 'counted'
    if (this.#left === 0 && !isLast) this.#phase = 'chunk end'
    this.#listener.data(at === 0 && end === bytes.length ? bytes : bytes.subarray(at, end))
    if (isLast) this.#phase = 'complete'
    return end
  }

  /** Reads a byte of what stands between the chunks of a body, and after the last one. */
  #readByte(byte: number): void {
    switch (this.#phase) {
      case 'size': {
        const digit = digitOf(byte)
        if (digit >= 0 && ++this.#digits <= 12) this.#left = this.#left * 16 + digit
        else if (this.#digits === 0 || digit >= 0) throw notInChunks()
        else if (byte === carriageReturn) this.#phase = 'size end'
        else if (byte === semicolon) {
          this.#keep(byte)
          this.#phase = 'extension'
        } else throw notInChunks()
        return
      }
      case 'extension':
        if (byte !== carriageReturn) return this.#keep(byte)
        if (!extensions.test(this.#extra)) throw notInChunks()
        this.#phase = 'size end'
        return
      case 'size end':
        this.#expect(byte, lineFeed, this.#left === 0 ? 'trailer' : 'chunk')
        this.#extra = ''
        return
      case 'chunk end':
        return this.#expect(byte, carriageReturn, 'chunk line end')
      case 'chunk line end':
        this.#expect(byte, lineFeed, 'size')
        this.#nextSize()
        return
      default:
        // Trailers, which an empty line ends.
        this.#keep(byte)
        if (this.#extra !== '\r\n' && !this.#extra.endsWith('\n\r\n')) return
        if (!trailers.test(this.#extra.slice(0, -2))) throw notInChunks()
        this.#phase = 'complete'
    }
  }

  #expect(byte: number, wanted: number, next: Phase): void {
    if (byte !== wanted) throw notInChunks()
    this.#phase = next
  }

  #keep(byte: number): void {
    this.#extra += String.fromCharCode(byte)
    if (this.#extra.length > maxHeadBytes)
      throw new MalformedAnswer(`It has more than ${maxHeadBytes} bytes beside the chunks of its body.`)
  }
}
