import { existsSync } from 'node:fs'
import { assetPath, font } from '../../../core/assets.ts'
import { Failure } from '../../../core/failure.ts'
import { type Canvas, darken, drawStamp, type Stamp } from './canvas.ts'
import { type ImageSize, sharp } from './images.ts'

/** Maximum rendered characters of a prompt. */
const maxLetters = 400

/** Draws rendered text on a canvas. Reusable for canvases of one size; costs only the pixels that it covers. */
export type Caption = (canvas: Canvas) => void

export interface CaptionBox extends ImageSize {
  left: number
  top: number
}

/**
 * Renders the prompt in the middle or at the bottom of the box, and a line of small print below. Text that cannot be
 * rendered is left out and reported through `warn`.
 */
export async function openCaption(
  text: { prompt: string; print: string },
  box: CaptionBox,
  position: 'middle' | 'foot',
  warn: (message: string) => Promise<void>,
): Promise<Caption> {
  const words = captionText(text.prompt, maxLetters)
  const lines = Math.ceil(words.length / 30)
  const high = Math.min(position === 'middle' ? 0.6 : 0.3, 0.07 + 0.07 * lines)
  const prompt = await render(words, { width: box.width * 0.86, height: box.height * high }, warn)
  const small = Math.max(8, Math.round(box.height / 36))
  const print = await render(captionText(text.print, 160), { width: box.width * 0.96, height: small }, warn)
  const stamps: Stamp[] = []
  const margin = Math.max(2, Math.round(small / 2))
  const foot = box.top + box.height - margin
  if (print) stamps.push({ ...print, left: box.left + margin, top: foot - print.height })
  if (prompt) {
    const rest = foot - (print ? print.height + 2 * margin : 0)
    const top =
      position === 'foot' ? rest - prompt.height - margin : Math.round(box.top + (box.height - prompt.height) / 2)
    stamps.push({ ...prompt, left: Math.round(box.left + (box.width - prompt.width) / 2), top })
  }
  const shades = stamps.map(({ left, top, width, height }) => ({
    left: left - margin,
    top: top - margin,
    width: width + 2 * margin,
    height: height + 2 * margin,
  }))
  return canvas => {
    for (const one of shades) darken(canvas, one, 96)
    for (const one of stamps) drawStamp(canvas, one)
  }
}

/** Renders white text that fits the size; undefined if it is empty or the size is too small. */
async function render(words: string, size: ImageSize, warn: (message: string) => Promise<void>) {
  const width = Math.floor(size.width)
  const height = Math.floor(size.height)
  if (words === '' || width < 8 || height < 4) return undefined
  const fontfile = assetPath(font)
  if (!existsSync(fontfile)) throw new Failure('internal_error', `${fontfile} is missing. Run: npm run build`)
  try {
    const { data, info } = await sharp()({
      text: {
        text: `<span foreground="white">${escaped(words)}</span>`,
        font: 'DejaVu Sans',
        fontfile,
        width,
        height,
        rgba: true,
        align: 'centre',
        wrap: 'word-char',
      },
    })
      .raw()
      .toBuffer({ resolveWithObject: true })
    return {
      width: info.width,
      height: info.height,
      data: new Uint8Array(data.buffer, data.byteOffset, data.byteLength),
    }
  } catch (thrown) {
    await warn(`A text cannot be rendered: ${(thrown as Error).message}.`)
    return undefined
  }
}

/** Characters that the text library rejects: control characters, separators and Unicode noncharacters. */
const unprintable = /[\p{Cc}\p{Zl}\p{Zp}\u{FFFE}\u{FFFF}\u{FDD0}-\u{FDEF}]/gu
const longMarkSequences = /(\p{M}{3})\p{M}+/gu

/**
 * Makes a text renderable: one paragraph of at most `limit` characters without unprintable ones. Long texts are
 * truncated first, to bound the cost.
 */
function captionText(text: string, limit: number): string {
  const start = text.slice(0, limit * 8).toWellFormed()
  const words = start.replace(unprintable, ' ').replace(longMarkSequences, '$1').replace(/\s+/g, ' ').trim()
  const characters = Array.from(words)
  return characters.length <= limit && start.length === text.length
    ? words
    : `${characters.slice(0, limit).join('').trimEnd()}…`
}

const escapes: Record<string, string> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;', "'": '&#39;' }

const escaped = (text: string): string => text.replace(/[&<>"']/g, mark => escapes[mark]!)
