/** Decoders for machines without ffmpeg: WebAssembly, half a megabyte, loaded with the first audio. */
export { decoder as flac } from '@audio/decode-flac'
export { decoder as mp3 } from '@audio/decode-mp3'
export { decoder as opus } from '@audio/decode-opus'
export { decoder as vorbis } from '@audio/decode-vorbis'
