import { memo, useEffect, useLayoutEffect, useRef, useState } from 'react'
import { chatText } from '../../text/chat.ts'
import type { DrawFormula } from './draw-formula.ts'

interface FormulaProps {
  tex: string
  isDisplay: boolean
}

let draw: DrawFormula | undefined

/** A formula. What draws it is loaded with the first one; until then, and if it is no TeX, it stands as it was written. */
export const Formula = memo(function Formula({ tex, isDisplay }: FormulaProps) {
  const [isLoaded, setLoaded] = useState(draw !== undefined)
  const [isDrawn, setDrawn] = useState(true)
  const place = useRef<HTMLSpanElement>(null)
  useEffect(() => {
    if (isLoaded) return
    let isHere = true
    void import('./draw-formula.ts').then(
      ({ drawFormula }) => {
        draw = drawFormula
        if (isHere) setLoaded(true)
      },
      // Without its marks it is still a formula.
      () => {},
    )
    return () => {
      isHere = false
    }
  }, [isLoaded])
  useLayoutEffect(() => {
    if (isLoaded && place.current) setDrawn(draw!(tex, isDisplay, place.current))
  }, [isLoaded, tex, isDisplay])
  const shown =
    isLoaded && isDrawn ? (
      <span key="drawn" ref={place} />
    ) : (
      <code key="written" className="bg-raised rounded px-1 font-mono text-[0.9em] break-words whitespace-pre-wrap">
        {tex.trim()}
      </code>
    )
  if (!isDisplay) return shown
  return (
    <span role="group" aria-label={chatText.formula} tabIndex={0} className="block overflow-x-auto py-1 text-center">
      {shown}
    </span>
  )
})
