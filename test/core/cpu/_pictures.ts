import { crc32, deflateSync } from 'node:zlib'
import sharp from 'sharp'

/** One chunk of a PNG. */
export function chunk(type: string, content: Uint8Array): Buffer {
  const whole = Buffer.concat([Buffer.from(type, 'latin1'), content])
  const [length, sum] = [Buffer.alloc(4), Buffer.alloc(4)]
  length.writeUInt32BE(content.length)
  sum.writeUInt32BE(crc32(whole))
  return Buffer.concat([length, whole, sum])
}

const signature = Buffer.from('\x89PNG\r\n\x1a\n', 'latin1')

/** A PNG of one bit per pixel, all black; `between` goes before the pixels. Its file is tiny. */
export function blackPng(width: number, height: number, between: Uint8Array[] = []): Buffer {
  const header = Buffer.alloc(13)
  header.writeUInt32BE(width, 0)
  header.writeUInt32BE(height, 4)
  header[8] = 1
  const rows = deflateSync(Buffer.alloc((1 + Math.ceil(width / 8)) * height), { level: 9, memLevel: 9 })
  return Buffer.concat([
    signature,
    chunk('IHDR', header),
    ...between,
    chunk('IDAT', rows),
    chunk('IEND', Buffer.alloc(0)),
  ])
}

/** A noisy image, which does not compress. */
export const noise = (width = 320, height = 200) =>
  sharp({
    create: {
      width,
      height,
      channels: 3,
      background: 'grey',
      noise: { type: 'gaussian', mean: 128, sigma: 30 },
    },
  })

/** A JPEG segment, inserted after the first two bytes. */
export function withSegment(jpeg: Buffer, marker: number, content: Uint8Array): Buffer {
  const head = Buffer.from([0xff, marker, 0, 0])
  head.writeUInt16BE(content.length + 2, 2)
  return Buffer.concat([jpeg.subarray(0, 2), head, content, jpeg.subarray(2)])
}
