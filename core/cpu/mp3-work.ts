import { readFileSync } from 'node:fs'
import type { MessagePort } from 'node:worker_threads'
import { createEncoder } from 'wasm-media-encoders'
import { assetPath } from '../assets.ts'

/** LAME is LGPL and stays a file of its own, which is loaded at run time. Compiled once; it stays as long as the thread, which ends when it has had nothing to do for half a minute. */
let module: WebAssembly.Module | undefined

/**
 * Makes MP3 of samples that come through the port: each message, 16-bit samples in mono, is answered with what there is
 * of MP3 so far; null, which is the last, with the rest. Resolves when the port is closed.
 */
export async function encodeMp3(rate: number, port: MessagePort): Promise<void> {
  // Listened to before anything is waited for: a close that nobody hears does not come again.
  const closed = new Promise<void>(resolve => port.once('close', resolve))
  try {
    const program = module ?? new Uint8Array(readFileSync(assetPath('audio/mp3.wasm')))
    const encoder = await createEncoder('audio/mpeg', program, compiled => {
      module = compiled
    })
    encoder.configure({ sampleRate: rate, channels: 1, bitrate: rate < 32_000 ? 64 : 96 })
    port.on('message', (samples: Uint8Array | null) => {
      try {
        const made = samples === null ? encoder.finalize() : encoder.encode([floatsOf(samples)])
        // What the encoder gives is its own memory, which it writes over.
        const bytes = new Uint8Array(made)
        port.postMessage(bytes, [bytes.buffer])
      } catch (thrown) {
        port.postMessage({ error: String(thrown) })
      }
    })
  } catch (thrown) {
    port.on('message', () => port.postMessage({ error: String(thrown) }))
  }
  await closed
}

function floatsOf(samples: Uint8Array): Float32Array {
  const view = new DataView(samples.buffer, samples.byteOffset, samples.byteLength)
  return Float32Array.from({ length: samples.byteLength >> 1 }, (_, at) => view.getInt16(at * 2, true) / 32_768)
}
