import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { Failure } from '../../failure.ts'
import { diskFailure } from '../../files/write.ts'
import { AnswerFiles } from './answer-files.ts'
import { EngineFault } from './engine-messages.ts'

/** Strings up to this length stay in the text. */
const maxShort = 4096
/** Bytes of an answer without its files. */
const maxText = 1 << 20
const maxFiles = 64
/** Bytes of all files of one answer. The limit of the server applies later; this one protects the disk. */
const maxFileBytes = 2 ** 31
const quote = 0x22
const backslash = 0x5c
const base64 = /^[A-Za-z0-9+/]+=*$/
/** The value that stands in the text for the file with this index. */
const valueOf = (index: number): string => `infer-file:${index}`

/**
 * Reads a JSON answer in pieces of any size. Every long base64 string is decoded into a file of the folder while it
 * arrives, so that neither memory nor the event loop gets a whole image. Throws EngineFault if the answer is too large.
 */
export class Base64Reader {
  #folder: string
  #prefix: string
  #text: Buffer[] = []
  #textBytes = 0
  #state: 'outside' | 'string' | 'file' = 'outside'
  #escaped = false
  /** The beginning of the current string, until it is known whether it is short. */
  #held: Buffer[] = []
  #heldBytes = 0
  #isText = false
  #names: string[] = []
  #files: AnswerFiles
  #fileBytes = 0
  #rest = ''
  #shortFiles = 0

  /** Files get the name `prefix` and a number. */
  constructor(folder: string, prefix: string) {
    this.#folder = folder
    this.#prefix = prefix
    this.#files = new AnswerFiles(folder)
  }

  /** Called when everything is written that was fed so far. */
  set drained(listener: () => void) {
    this.#files.drained = listener
  }

  /** Returns false if the caller should wait for `drained` before it feeds more. */
  feed(chunk: Buffer): boolean {
    for (let at = 0; at < chunk.length; ) {
      if (this.#state === 'file') {
        const end = chunk.indexOf(quote, at)
        const piece = chunk.subarray(at, end < 0 ? chunk.length : end)
        this.#decode(piece)
        if (end < 0) break
        this.#endFile()
        at = end
      } else if (this.#state === 'string') {
        const end = this.#endOfString(chunk, at)
        this.#hold(chunk.subarray(at, end < 0 ? chunk.length : end))
        if (this.#heldBytes > maxShort && !this.#isText) {
          this.#beginFile()
          if (end < 0) break
          if (!this.#isText) this.#endFile()
        } else if (end < 0) break
        this.#flush()
        this.#state = 'outside'
        this.#isText = false
        this.#add(chunk.subarray(end, end + 1))
        at = end + 1
      } else {
        const start = chunk.indexOf(quote, at)
        this.#add(chunk.subarray(at, start < 0 ? chunk.length : start + 1))
        if (start < 0) break
        this.#state = 'string'
        at = start + 1
      }
    }
    return this.#files.hasRoom
  }

  /** Resolves with the answer once its files are written. In the text, `infer-file:0` stands for the first one. */
  async end(): Promise<Buffer> {
    if (this.#state !== 'outside') throw new EngineFault('broke off its answer')
    await this.#files.written()
    return Buffer.concat(this.#text)
  }

  /**
   * Resolves with the name of the file of a value of the answer. A short string has no file yet: it is written now.
   * Throws EngineFault for values that are not base64.
   */
  async fileOf(value: unknown): Promise<string> {
    const known = this.#names.find((_, index) => valueOf(index) === value)
    if (known !== undefined) return known
    if (typeof value !== 'string' || !base64.test(value)) throw new EngineFault('sent a result that is not base64')
    const name = `${this.#prefix}-short-${++this.#shortFiles}`
    await writeFile(join(this.#folder, name), Buffer.from(value, 'base64'), { flag: 'wx', mode: 0o600 }).catch(
      (cause: unknown) => {
        throw Failure.from(diskFailure(cause))
      },
    )
    return name
  }

  /** Stops writing. The files that are there belong to the folder and are removed with it. */
  abandon(): void {
    this.#files.abandon()
  }

  #add(bytes: Buffer): void {
    this.#textBytes += bytes.length
    if (this.#textBytes > maxText) throw new EngineFault('sent an answer that is too long')
    this.#text.push(Buffer.from(bytes))
  }

  #endOfString(chunk: Buffer, from: number): number {
    for (let at = from; at < chunk.length; at++) {
      if (this.#escaped) this.#escaped = false
      else if (chunk[at] === backslash) this.#escaped = true
      else if (chunk[at] === quote) return at
    }
    return -1
  }

  #hold(bytes: Buffer): void {
    if (this.#isText) return this.#add(bytes)
    this.#held.push(Buffer.from(bytes))
    this.#heldBytes += bytes.length
  }

  #flush(): void {
    for (const bytes of this.#held) this.#add(bytes)
    this.#held = []
    this.#heldBytes = 0
  }

  /** The current string is long: writes it to a file if it is base64, else keeps it as text. */
  #beginFile(): void {
    const bytes = Buffer.concat(this.#held)
    if (!base64.test(bytes.toString('latin1'))) {
      this.#isText = true
      return this.#flush()
    }
    if (this.#names.length === maxFiles) throw new EngineFault(`sent more than ${maxFiles} files`)
    const name = `${this.#prefix}-${this.#names.length}`
    this.#files.begin(name)
    this.#add(Buffer.from(valueOf(this.#names.length)))
    this.#names.push(name)
    this.#held = []
    this.#heldBytes = 0
    this.#state = 'file'
    this.#escaped = false
    this.#decode(bytes)
  }

  #decode(piece: Buffer): void {
    const text = this.#rest + piece.toString('latin1')
    const whole = text.length - (text.length % 4)
    this.#rest = text.slice(whole)
    this.#write(Buffer.from(text.slice(0, whole), 'base64'))
  }

  #write(bytes: Buffer): void {
    this.#fileBytes += bytes.length
    if (this.#fileBytes > maxFileBytes) throw new EngineFault('sent files that are too large')
    this.#files.add(bytes)
  }

  #endFile(): void {
    if (this.#rest) this.#write(Buffer.from(this.#rest, 'base64'))
    this.#rest = ''
    this.#files.end()
    this.#state = 'string'
  }
}
