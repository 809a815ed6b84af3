import { useCallback, useState } from 'react'
import { playgroundText } from '../../../text/playground.ts'
import type { FormFaults } from './fields.ts'

/** What is wrong with the fields of a form, by their names, as people read it. */
export function useErrors() {
  const [errors, setErrors] = useState<Readonly<Record<string, string>>>({})
  return {
    errors,
    setErrors,
    /** Takes the error from a field, because its value has changed. */
    clear: useCallback((name: string): void => {
      setErrors(now => {
        const { [name]: _, ...others } = now
        return others
      })
    }, []),
    /** Shows the faults and nothing else. Returns whether there are none. */
    check: (faults: FormFaults): boolean => {
      const wrong = Object.entries(faults)
      setErrors(Object.fromEntries(wrong.map(([name, fault]) => [name, playgroundText.errors[fault]])))
      return wrong.length === 0
    },
  }
}
