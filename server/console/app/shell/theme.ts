import { useSyncExternalStore } from 'react'

export type Theme = 'auto' | 'light' | 'dark'
const key = 'infer.theme'
export const themes: readonly Theme[] = ['auto', 'light', 'dark']

const stored = (): Theme => themes.find(one => one === localStorage.getItem(key)) ?? 'auto'

/** Sets the theme that this browser chose last. */
export function applyTheme(theme = stored()): void {
  if (theme === 'auto') delete document.documentElement.dataset.theme
  else document.documentElement.dataset.theme = theme
}

const watchers = new Set<() => void>()

/** Sets a theme, which this browser keeps. */
export function chooseTheme(theme: Theme): void {
  localStorage.setItem(key, theme)
  applyTheme(theme)
  for (const watcher of watchers) watcher()
}

function watch(watcher: () => void): () => void {
  watchers.add(watcher)
  return () => watchers.delete(watcher)
}

/** The theme, wherever it was chosen. */
export const useTheme = (): Theme => useSyncExternalStore(watch, stored)
