/** The decoders that are used where ffmpeg is not: WebAssembly, half a megabyte, loaded when there is a sound for them. */
export { decoder as flac } from '@audio/decode-flac'
export { decoder as mp3 } from '@audio/decode-mp3'
export { decoder as opus } from '@audio/decode-opus'
export { decoder as vorbis } from '@audio/decode-vorbis'
