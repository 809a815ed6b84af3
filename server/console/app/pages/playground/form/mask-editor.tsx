import { type PointerEvent, useRef, useState } from 'react'
import { Button } from '../../../components/button.tsx'
import { Dialog } from '../../../components/dialog.tsx'
import { playgroundText as text } from '../../../text/playground.ts'

/** Hundredths of the window's height: also a small image is painted on large. */
const shownHeight = 50

/** Paints a mask over an image: a PNG of the same size, white where something is painted, black elsewhere. */
export function MaskEditor({ image, close, use }: { image: string; close: () => void; use: (mask: File) => void }) {
  const canvas = useRef<HTMLCanvasElement>(null)
  const last = useRef<{ x: number; y: number }>(undefined)
  const [brush, setBrush] = useState(40)
  const [size, setSize] = useState<{ width: number; height: number }>()
  const [painted, setPainted] = useState(false)

  /** The place of the pointer in pixels of the image. */
  function placeOf({ clientX, clientY }: PointerEvent): { x: number; y: number; scale: number } {
    const shown = canvas.current!.getBoundingClientRect()
    const scale = canvas.current!.width / shown.width
    return { x: (clientX - shown.left) * scale, y: (clientY - shown.top) * scale, scale }
  }

  function paint(event: PointerEvent): void {
    const { x, y, scale } = placeOf(event)
    const context = canvas.current!.getContext('2d')!
    const from = last.current ?? { x, y }
    Object.assign(context, { lineCap: 'round', lineJoin: 'round', lineWidth: brush * scale, strokeStyle: 'white' })
    context.beginPath()
    context.moveTo(from.x, from.y)
    // A line of no length is not drawn: one press paints a dot.
    context.lineTo(x + 0.01, y)
    context.stroke()
    last.current = { x, y }
    setPainted(true)
  }

  function finish(): void {
    const { width, height } = canvas.current!
    const mask = new OffscreenCanvas(width, height)
    const context = mask.getContext('2d')!
    context.fillStyle = 'black'
    context.fillRect(0, 0, width, height)
    context.drawImage(canvas.current!, 0, 0)
    void mask.convertToBlob({ type: 'image/png' }).then(png => use(new File([png], 'mask.png', { type: 'image/png' })))
  }

  function erase(): void {
    const { width, height } = canvas.current!
    canvas.current!.getContext('2d')!.clearRect(0, 0, width, height)
    setPainted(false)
  }

  return (
    <Dialog title={text.maskTitle} close={close} wide>
      <p className="text-muted">{text.maskHint}</p>
      <label className="flex items-center gap-3">
        {text.brush}
        <input
          type="range"
          min={4}
          max={160}
          value={brush}
          onChange={event => setBrush(Number(event.target.value))}
          className="flex-1"
        />
      </label>
      <div
        className="relative mx-auto max-w-full"
        style={
          size && { width: `${(shownHeight * size.width) / size.height}dvh`, aspectRatio: size.width / size.height }
        }
      >
        <img
          src={image}
          alt=""
          className="size-full"
          onLoad={({ currentTarget: { naturalWidth, naturalHeight } }) =>
            setSize({ width: naturalWidth, height: naturalHeight })
          }
        />
        {size && (
          <canvas
            ref={canvas}
            {...size}
            role="img"
            aria-label={text.maskCanvas}
            className="absolute inset-0 size-full cursor-crosshair touch-none opacity-60"
            onPointerDown={event => {
              event.currentTarget.setPointerCapture(event.pointerId)
              last.current = undefined
              paint(event)
            }}
            onPointerMove={event => event.buttons !== 0 && paint(event)}
          />
        )}
      </div>
      <div className="flex justify-end gap-2">
        <Button disabled={!painted} onClick={erase} label={text.eraseMask} />
        <Button primary disabled={!painted} onClick={finish} label={text.useMask} />
      </div>
    </Dialog>
  )
}
