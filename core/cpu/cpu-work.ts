import { bytesOfBase64 } from '../data-url.ts'
import type { JsonBounds } from '../json.ts'
import { readGgufHeader } from '../models/gguf-header.ts'
import { decodeAudio } from './audio-work.ts'
import { type BodyOptions, type ReadBody, readBodyValue } from './body-work.ts'
import { alphaMaskOf, checkImage, encodeImage, imageDataUrl, reencodeImage, thumbnailOf } from './image-work.ts'
import { encodeMp3 } from './mp3-work.ts'
import { bufferOf, type Done, type ThreadWork } from './thread-work.ts'

/** Makes thread work of a function, called with its list of arguments. `give`: the bytes of its result to transfer. */
const work =
  <Arguments extends unknown[], Value>(
    run: (...list: Arguments) => Promise<Value>,
    give: (value: Value) => Uint8Array[] = () => [],
  ) =>
  async (list: Arguments): Promise<Done<Value>> => {
    const value = await run(...list)
    return { value, give: give(value) }
  }

/** Thread work on bodies, images and audio of any request. */
export const cpuWork = {
  readBody([body, bounds, options]: [body: Uint8Array, bounds: JsonBounds, options: BodyOptions]): Done<ReadBody> {
    const value = readBodyValue(bufferOf(body), bounds, options)
    return { value, give: [...value.inline.values()] }
  },
  bytesOfBase64([text]: [text: Uint8Array]): Done<ReturnType<typeof bytesOfBase64>> {
    const value = bytesOfBase64(bufferOf(text).toString())
    return { value, give: value ? [value] : [] }
  },
  checkImage: work(checkImage),
  reencodeImage: work(reencodeImage, ({ bytes }) => [bytes]),
  imageDataUrl: work(imageDataUrl, bytes => [bytes]),
  alphaMask: work(alphaMaskOf, bytes => [bytes]),
  encodeImage: work(encodeImage, bytes => [bytes]),
  thumbnail: work(thumbnailOf, bytes => [bytes]),
  decodeAudio: work(decodeAudio),
  ggufHeader: work((path: string) => readGgufHeader(path)),
  encodeMp3: work(encodeMp3),
  nothing: (): Done<undefined> => ({ value: undefined }),
} satisfies ThreadWork
