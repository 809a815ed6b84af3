import { useEffect, useMemo, useState } from 'react'

/** The first of many, and with each task `step` more, so that drawing them never keeps the browser busy for long. */
export function useGrowing<Part>(all: readonly Part[], step: number): readonly Part[] {
  const [count, setCount] = useState(step)
  const isWhole = count >= all.length
  useEffect(() => {
    if (isWhole) return
    const timer = setTimeout(() => setCount(count + step))
    return () => clearTimeout(timer)
  }, [isWhole, count, step])
  return useMemo(() => (isWhole ? all : all.slice(0, count)), [isWhole, all, count])
}
