import { useState } from 'react'

export type Theme = 'auto' | 'light' | 'dark'
const key = 'infer.theme'
const order: readonly Theme[] = ['auto', 'light', 'dark']

const stored = (): Theme => order.find(one => one === localStorage.getItem(key)) ?? 'auto'

/** Sets the theme that this browser chose last. */
export function applyTheme(theme = stored()): void {
  if (theme === 'auto') delete document.documentElement.dataset.theme
  else document.documentElement.dataset.theme = theme
}

/** The theme, and the function that changes to the next one. */
export function useTheme(): [theme: Theme, next: () => void] {
  const [theme, setTheme] = useState(stored)
  const next = () => {
    const chosen = order[(order.indexOf(theme) + 1) % order.length]!
    localStorage.setItem(key, chosen)
    applyTheme(chosen)
    setTheme(chosen)
  }
  return [theme, next]
}
