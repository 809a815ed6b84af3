import { readFileSync } from 'node:fs'
import type { MessagePort } from 'node:worker_threads'
import { createEncoder } from 'wasm-media-encoders'
import { assetPath } from '../assets.ts'

/** LAME is LGPL and stays a separate file, which is loaded at run time. The thread compiles it once and keeps it. */
let module: WebAssembly.Module | undefined

/**
 * Encodes samples from the port as MP3. Each message has 16-bit samples in mono and gets the MP3 bytes that are ready as
 * its answer; the last message is null and gets the rest. Resolves when the port is closed.
 */
export async function encodeMp3(rate: number, port: MessagePort): Promise<void> {
  // Listen before the first await: a close event without a listener would be lost.
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
        // A copy, because the encoder returns its own memory and overwrites it.
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
