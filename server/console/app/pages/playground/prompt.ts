import { useEffect, useState } from 'react'
import { useAddress } from '../../components/use-address.ts'
import { type Origin, useKept } from './kept.ts'

/** Characters. A longer prompt is kept in the tab, and is not part of the address. */
const maxInAddress = 2_000
/** Milliseconds without a change after which the prompt is put into the address: browsers limit how often that may be. */
const pauseMs = 400

/** The prompt that all tasks share, and what the address said of it last. */
interface KeptPrompt {
  text: string
  inAddress: string
}

/** The prompt of the playground, for the tasks that have one. */
export interface SharedPrompt {
  text: string
  change: (text: string) => void
}

/**
 * The prompt, which all tasks share. It is in the address, so that a link has it; an address that this tab has not written
 * wins over what the tab keeps.
 */
export function usePrompt(origin: Origin, initial: unknown): SharedPrompt {
  const [search, changeAddress] = useAddress()
  const [inAddress] = useState(() => search.get('prompt') ?? '')
  const [kept, keep] = useKept<KeptPrompt>(
    'all',
    'prompt',
    origin,
    () => ({ text: typeof initial === 'string' ? initial : '', inAddress: '' }),
    begun => (inAddress === '' || inAddress === begun.inAddress ? begun : { text: inAddress, inAddress }),
  )
  const { text } = kept
  useEffect(() => {
    const wanted = text.length <= maxInAddress ? text : ''
    const timer = setTimeout(() => {
      if (wanted === (new URLSearchParams(location.search).get('prompt') ?? '')) return
      changeAddress({ prompt: wanted })
      keep(now => ({ ...now, inAddress: wanted }))
    }, pauseMs)
    return () => clearTimeout(timer)
  }, [text])
  return { text, change: next => keep(now => ({ ...now, text: next })) }
}
