import { useState } from 'react'

export type Theme = 'auto' | 'light' | 'dark'
const key = 'infer.theme'
export const themes: readonly Theme[] = ['auto', 'light', 'dark']

const stored = (): Theme => themes.find(one => one === localStorage.getItem(key)) ?? 'auto'

/** Sets the theme that this browser chose last. */
export function applyTheme(theme = stored()): void {
  if (theme === 'auto') delete document.documentElement.dataset.theme
  else document.documentElement.dataset.theme = theme
}

/** Sets a theme, which this browser keeps. */
export function chooseTheme(theme: Theme): void {
  localStorage.setItem(key, theme)
  applyTheme(theme)
}

/** The theme, and the function that sets another one. */
export function useTheme(): [theme: Theme, choose: (theme: Theme) => void] {
  const [theme, setTheme] = useState(stored)
  const choose = (chosen: Theme) => {
    chooseTheme(chosen)
    setTheme(chosen)
  }
  return [theme, choose]
}
