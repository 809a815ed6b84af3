import { connect } from 'node:tls'
import { tlsOptions } from './endpoint-tls.ts'
import type { EndpointTls } from './launcher.ts'

/** The name of the wrapper's own protocol: lines of JSON, each answered by one. */
const protocol = 'infer-control'
const connectMs = 10_000

/** A connection to the wrapper of an engine. It tells the wrapper that its server is there, and closes when the engine has ended. */
export interface Control {
  /** Has the engine end, and killed after `graceMs`. Resolves with whether the wrapper has accepted that. */
  stop(graceMs: number, signal: AbortSignal): Promise<boolean>
  close(): void
}

export interface ControlOptions {
  address: { host: string; port: number }
  tls: EndpointTls
  /** Milliseconds between two words to the wrapper. */
  beatMs: number
  /** Called once, when it was closed by the other side; `wasReached` is false if it could not be opened. */
  closed: (wasReached: boolean) => void
}

export function openControl({ address, tls, beatMs, closed }: ControlOptions): Control {
  const socket = connect({ ...address, ...tlsOptions(tls), ALPNProtocols: [protocol] })
  /** Those who wait for the answer to a line, oldest first. */
  const waiting: ((accepted: boolean) => void)[] = []
  let isOpen = true
  let wasReached = false
  let answers = ''

  const send = (message: object): Promise<boolean> => {
    if (!isOpen) return Promise.resolve(false)
    const { promise, resolve } = Promise.withResolvers<boolean>()
    waiting.push(resolve)
    socket.write(`${JSON.stringify(message)}\n`)
    return promise
  }
  const beat = () => {
    // A wrapper that does not answer before the next beat cannot be reached any more.
    if (waiting.length > 0) return void socket.destroy()
    void send({})
  }

  socket.setTimeout(connectMs, () => socket.destroy())
  socket.on('secureConnect', () => socket.setTimeout(0))
  socket.once('data', () => (wasReached = true))
  socket.on('data', (data: Buffer) => {
    answers += data.toString('latin1')
    const lines = answers.split('\n')
    answers = lines.pop()!
    for (let count = lines.length; count > 0; count--) waiting.shift()?.(true)
  })
  socket.on('error', () => {})
  const timer = setInterval(beat, beatMs)
  timer.unref()
  socket.unref()
  socket.once('close', () => {
    clearInterval(timer)
    const wasOpen = isOpen
    isOpen = false
    for (const answer of waiting.splice(0)) answer(false)
    if (wasOpen) closed(wasReached)
  })
  void send({})

  return {
    async stop(graceMs, signal) {
      const aborted = Promise.withResolvers<boolean>()
      const abort = () => aborted.resolve(false)
      signal.addEventListener('abort', abort)
      try {
        return await Promise.race([send({ stop: graceMs }), aborted.promise])
      } finally {
        signal.removeEventListener('abort', abort)
      }
    },
    close() {
      isOpen = false
      socket.destroy()
    },
  }
}
