/** What every module of the page builds with: elements, state and effects. */

import htm from "./vendor/htm.js"
import { Fragment, h, render } from "./vendor/preact.js"
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "./vendor/preact-hooks.js"
import { batch, computed, effect, signal, untracked } from "./vendor/signals-core.js"
import { useComputed, useSignal } from "./vendor/signals.js"

/** Makes elements from a template. */
export const html = htm.bind(h)

export {
  Fragment,
  batch,
  computed,
  effect,
  h,
  render,
  signal,
  untracked,
  useComputed,
  useEffect,
  useLayoutEffect,
  useMemo,
  useRef,
  useSignal,
  useState,
}
