import { useEffect, useRef, useState } from 'react'
import { sendJson } from '../../../api/client.ts'
import { announce } from '../../../components/announcements.tsx'
import { voiceText as text } from '../../../text/voice.ts'

/** Stops what is read aloud now: one answer at a time. */
let stopCurrent: (() => void) | undefined

/** Reads a text aloud with a model: the first words are heard before the last are ready. */
export function useReading(model: string) {
  const [state, setState] = useState<'idle' | 'preparing' | 'reading'>('idle')
  const stop = useRef<() => void>(undefined)
  useEffect(() => () => stop.current?.(), [])

  async function read(markdown: string): Promise<void> {
    stopCurrent?.()
    const own = new AbortController()
    const { signal } = own
    const end = () => own.abort()
    stop.current = stopCurrent = end
    setState('preparing')
    try {
      const { spokenPieces } = await import('../../../components/markdown/spoken.ts')
      const pieces = spokenPieces(markdown)
      if (pieces.length === 0) throw new Error(text.nothingToRead)
      const synthesize = (at: number) => (at < pieces.length ? synthesized(pieces[at]!, model, signal) : undefined)
      let next = synthesize(0)
      for (let at = 0; at < pieces.length && !signal.aborted; at++) {
        const audio = await next!
        next = synthesize(at + 1)
        // It is awaited later, and a failure is announced then.
        next?.catch(() => undefined)
        setState('reading')
        await played(audio, signal)
      }
    } catch (thrown) {
      if (!signal.aborted) announce('bad', (thrown as Error).message)
    } finally {
      end()
      if (stop.current === end) setState('idle')
      if (stopCurrent === end) stopCurrent = undefined
    }
  }

  return { state, read: (markdown: string): void => void read(markdown), stop: (): void => stop.current?.() }
}

async function synthesized(input: string, model: string, signal: AbortSignal): Promise<Blob> {
  const answer = await sendJson('/std/v1/audio/speech', { model, input, response_format: 'mp3' }, signal)
  return await answer.blob()
}

/** Plays audio. Resolves when it has ended or is stopped by the signal; rejects if the browser does not play it. */
async function played(content: Blob, signal: AbortSignal): Promise<void> {
  const url = URL.createObjectURL(content)
  const audio = new Audio(url)
  try {
    await new Promise<void>((resolve, reject) => {
      const refuse = () => reject(new Error(text.notPlayed))
      audio.addEventListener('ended', () => resolve())
      audio.addEventListener('error', refuse)
      signal.addEventListener('abort', () => resolve())
      audio.play().catch(refuse)
    })
  } finally {
    audio.pause()
    URL.revokeObjectURL(url)
  }
}
