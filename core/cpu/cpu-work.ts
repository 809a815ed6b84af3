import type { MessagePort } from 'node:worker_threads'
import type { JsonBounds } from '../json.ts'
import { type GgufHeader, readGgufHeader } from '../models/gguf-header.ts'
import { type AudioLimits, type DecodedSamples, decodeAudio } from './audio-work.ts'
import { type BodyOptions, type ReadBody, readBodyValue } from './body-work.ts'
import {
  alphaMaskOf,
  checkImage,
  type Encoding,
  encodeImage,
  type ImageFacts,
  type ImageRules,
  type ImageSource,
  type ReencodeAs,
  type ReencodedImage,
  reencodeImage,
  thumbnailOf,
} from './image-work.ts'
import { encodeMp3 } from './mp3-work.ts'
import { bufferOf, type Done, type ThreadWork } from './thread-work.ts'

/** Thread work on bodies, images and audio of any request. */
export const cpuWork = {
  readBody({ body, bounds, options }: { body: Uint8Array; bounds: JsonBounds; options: BodyOptions }): Done<ReadBody> {
    const value = readBodyValue(bufferOf(body), bounds, options)
    return { value, give: [...value.inline.values()] }
  },
  checkImage: async ({ image, rules }: { image: ImageSource; rules: ImageRules }): Promise<Done<ImageFacts>> => ({
    value: await checkImage(image, rules),
  }),
  async reencodeImage({
    image,
    rules,
    as,
  }: {
    image: ImageSource
    rules: ImageRules
    as: ReencodeAs
  }): Promise<Done<ReencodedImage>> {
    const value = await reencodeImage(image, rules, as)
    return { value, give: [value.bytes] }
  },
  async alphaMask({
    mask,
    image,
    rules,
  }: {
    mask: ImageSource
    image: ImageSource
    rules: ImageRules
  }): Promise<Done<Uint8Array>> {
    const value = await alphaMaskOf(mask, image, rules)
    return { value, give: [value] }
  },
  async encodeImage({
    image,
    rules,
    encoding,
  }: {
    image: ImageSource
    rules: ImageRules
    encoding: Encoding
  }): Promise<Done<Uint8Array>> {
    const value = await encodeImage(image, rules, encoding)
    return { value, give: [value] }
  },
  async thumbnail({
    image,
    rules,
    longestSide,
  }: {
    image: ImageSource
    rules: ImageRules
    longestSide: number
  }): Promise<Done<Uint8Array>> {
    const value = await thumbnailOf(image, rules, longestSide)
    return { value, give: [value] }
  },
  decodeAudio: async ({
    from,
    into,
    bounds,
  }: {
    from: string
    into: string
    bounds: AudioLimits
  }): Promise<Done<DecodedSamples>> => ({ value: await decodeAudio(from, into, bounds) }),
  ggufHeader: async ({ path }: { path: string }): Promise<Done<GgufHeader>> => ({ value: await readGgufHeader(path) }),
  encodeMp3: async ({ rate, port }: { rate: number; port: MessagePort }): Promise<Done<void>> => ({
    value: await encodeMp3(rate, port),
  }),
} satisfies ThreadWork
