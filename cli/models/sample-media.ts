import { crc32, deflateSync } from 'node:zlib'
import { wavHead } from '../../core/tasks/wav.ts'

/** Small files for test requests, as data URLs. */
export const sampleMedia = {
  /** A square of 512 pixels: a gradient, on which an editing model has something to change. */
  image: () => png((x, y) => [x >> 1, y >> 1, 128]),
  /** The same size: white where the image is to be changed. */
  mask: () => png((x, y) => (x >= 128 && x < 384 && y >= 128 && y < 384 ? [255, 255, 255] : [0, 0, 0])),
  /** A second of a tone as WAV: 16 bits, 16 kHz. */
  audio: tone,
  video: () => `data:video/mp4;base64,${video}`,
}

const side = 512

/** Source: the PNG specification. */
function png(pixel: (x: number, y: number) => readonly number[]): string {
  const rows = Buffer.alloc(side * (1 + side * 3))
  for (let y = 0; y < side; y++) for (let x = 0; x < side; x++) rows.set(pixel(x, y), y * (1 + side * 3) + 1 + x * 3)
  const chunk = (type: string, data: Uint8Array) => {
    const body = Buffer.concat([Buffer.from(type), data])
    return [u32(data.length), body, u32(crc32(body))]
  }
  const header = Buffer.concat([u32(side), u32(side), Buffer.of(8, 2, 0, 0, 0)])
  const signature = Buffer.of(0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a)
  const chunks = [...chunk('IHDR', header), ...chunk('IDAT', deflateSync(rows)), ...chunk('IEND', Buffer.alloc(0))]
  return `data:image/png;base64,${Buffer.concat([signature, ...chunks]).toString('base64')}`
}

function u32(value: number): Buffer {
  const bytes = Buffer.alloc(4)
  bytes.writeUInt32BE(value)
  return bytes
}

function tone(): string {
  const rate = 16_000
  const samples = Buffer.alloc(2 * rate)
  for (let at = 0; at < rate; at++)
    samples.writeInt16LE(Math.round(8_000 * Math.sin((2 * Math.PI * 440 * at) / rate)), 2 * at)
  return `data:audio/wav;base64,${Buffer.concat([wavHead(rate, samples.length), samples]).toString('base64')}`
}

/** Four frames of a test pattern, 64 by 64 pixels, as MP4 with H.264. */
const video =
  'AAAAIGZ0eXBpc29tAAACAGlzb21pc28yYXZjMW1wNDEAAANAbW9vdgAAAGxtdmhkAAAAAAAAAAAAAAAAAAAD6AAAA+gAAQAAAQAAAAAAAAAAAAAA' +
  'AAEAAAAAAAAAAAAAAAAAAAABAAAAAAAAAAAAAAAAAABAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAgAAAo90cmFrAAAAXHRraGQAAAAD' +
  'AAAAAAAAAAAAAAABAAAAAAAAA+gAAAAAAAAAAAAAAAAAAAAAAAEAAAAAAAAAAAAAAAAAAAABAAAAAAAAAAAAAAAAAABAAAAAAEAAAABAAAAAAAAk' +
  'ZWR0cwAAABxlbHN0AAAAAAAAAAEAAAPoAAAgAAABAAAAAAIHbWRpYQAAACBtZGhkAAAAAAAAAAAAAAAAAABAAAAAQABVxAAAAAAALWhkbHIAAAAA' +
  'AAAAAHZpZGUAAAAAAAAAAAAAAABWaWRlb0hhbmRsZXIAAAABsm1pbmYAAAAUdm1oZAAAAAEAAAAAAAAAAAAAACRkaW5mAAAAHGRyZWYAAAAAAAAA' +
  'AQAAAAx1cmwgAAAAAQAAAXJzdGJsAAAAwnN0c2QAAAAAAAAAAQAAALJhdmMxAAAAAAAAAAEAAAAAAAAAAAAAAAAAAAAAAEAAQABIAAAASAAAAAAA' +
  'AAABDExhdmMgbGlieDI2NAAAAAAAAAAAAAAAAAAAAAAAAAAAGP//AAAAOGF2Y0MBZAAK/+EAGmdkAAqscgREJsBEAAADAAQAAAMAIDxIlhGAAQAH' +
  'aOhDg5LIsP34+AAAAAAQcGFzcAAAAAEAAAABAAAAFGJ0cnQAAAAAAAANYAAADWAAAAAYc3R0cwAAAAAAAAABAAAABAAAEAAAAAAUc3RzcwAAAAAA' +
  'AAABAAAAAQAAAChjdHRzAAAAAAAAAAMAAAABAAAgAAAAAAEAAEAAAAAAAgAAEAAAAAAcc3RzYwAAAAAAAAABAAAAAQAAAAQAAAABAAAAJHN0c3oA' +
  'AAAAAAAAAAAAAAQAAAFeAAAAMQAAAA4AAAAPAAAAFHN0Y28AAAAAAAAAAQAAA3AAAAA9dWR0YQAAADVtZXRhAAAAAAAAACFoZGxyAAAAAAAAAABt' +
  'ZGlyYXBwbAAAAAAAAAAAAAAAAAhpbHN0AAAACGZyZWUAAAG0bWRhdAAAAVpliIEAL9HKlbRKiNhubrPkutzMG5P+1Q+v7oCycECvlQMCHy9mBkhL' +
  'zTIMQ+BG1DO6TA1haimQMCs1zKRL1kvn08hZqzbY6sn4un240epejFcX//GMELr6ByV3TwrO9U1+g+8MDx1Mw+VJxzdptvdG3tda67bjtrJrSANj' +
  'JBvx0uFWQQJF6tGr76J/f1T9ykBPDx3KC1dpojlOmD+YVk7IUdDNtZeK7CQOwG57OQYz4VT7t4Ynsyr2s34PknuW+5Q7VfziDUJi3wHi0lNYXGVh' +
  'UW0NKHYIrvwJFSXS0Pi8gj9guIu6ELCwuAo9jaRJw993et+/LA0N7RHWcudptB7daBbWdmh6MEvCFvFrFZvf1WwGblJAMhTy+lyy0Ue3eiYdTo1x' +
  'fEl/xp2iKXNUlZVcwzC0MLKfVJ72UAteyBNuJsepAFwiQ8ZdOG66K9enk3DjVlj/LsXQlUeFAAAALUGaCG2Ir2xHp8nwGQuP3OqRW0hWgAAZr10J' +
  '9cl4HKjuQxu3ChcurzXcedjS4AAAAApBnhAnER+wA/JBAAAACwGeGE1Ir7kalxTg'
